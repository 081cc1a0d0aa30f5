"""What networks are fed: data sets, batches of images, and weights that all frameworks share."""
