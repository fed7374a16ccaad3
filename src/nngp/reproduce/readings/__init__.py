"""What a figure or table shows, read from a store of finished runs."""
