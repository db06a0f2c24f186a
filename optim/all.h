/* all.h - every formula header; a new optimizer adds its line. */
#include "sgd.h"
#include "adamw.h"
#include "lamb.h"
#include "lars.h"
#include "came.h"
#include "merit.h"
