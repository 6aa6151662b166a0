/* spots.h - places labels beside points, clear of points and of each other. */
#ifndef HP_SPOTS_H
#define HP_SPOTS_H

/* A point or a label's centre, in pixels; the axes are at 0, y grows upwards. */
typedef struct hp_spot {
    double x, y;
} hp_spot;

/* Finds a centre for the label of each of point[0 .. n_label), beside it: on none of the n_point points, no
 * axis and no earlier label; if there is no such place, the one farthest from all. width, height: of a
 * label. Cost: n_label times n_point. */
void hp_spot_labels(const hp_spot *point, int n_point, int n_label, double width, double height,
                    hp_spot *label);

#endif
