"""What stands in Lightning's metrics.csv?"""
