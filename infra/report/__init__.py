"""The page of `jobwarden report`: one file of HTML, its plots as SVG, nothing fetched.

plots    bars, a line, dots: numbers in, SVG out
parts    the tiles and tables around them
page     the whole page
"""
