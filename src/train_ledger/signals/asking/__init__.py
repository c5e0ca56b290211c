"""What can be asked of a rank from outside while it trains?"""
