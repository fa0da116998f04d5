"""What stands for the folded part."""
