"""How long did each part of a step take, and how much of it was waiting?"""
