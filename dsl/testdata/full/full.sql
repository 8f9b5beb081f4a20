-- two lines
SELECT 1
