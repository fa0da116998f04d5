"""session_logs."""
