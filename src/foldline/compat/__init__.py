"""The documented APIs of five other systems. Each one only translates its terms; the engine makes the decisions."""
