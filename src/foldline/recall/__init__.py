"""The way back: everything ever said can be searched, and read again by its handle."""
