# Draw the log of largo-train --compare: accuracy for each epoch, small and large batch side by side.
#
#   gnuplot -c plot_compare.gp compare.csv compare.png
#
# Points are the seeds, lines their mean.

if (ARGC != 2) {
    print "usage: gnuplot -c plot_compare.gp LOG.csv PICTURE.png"
    exit status 2
}
csv = ARG1
if (strstrt(csv, "'")) {
    print sprintf("%s: a name with a quote cannot be passed to the shell", csv)
    exit status 2
}

# The columns by number; the heading tells test from validation accuracy.
quoted = sprintf("'%s'", csv)
split = system(sprintf("head -n 1 %s | cut -d, -f7 | cut -d_ -f1", quoted))
optimizers = system(sprintf("tail -n +2 %s | cut -d, -f1 | awk '!seen[$0]++'", quoted))
batches = system(sprintf("tail -n +2 %s | cut -d, -f2 | sort -nu", quoted))
seeds = system(sprintf("tail -n +2 %s | cut -d, -f9 | sort -u | wc -l", quoted)) + 0
if (words(optimizers) == 0) {
    print sprintf("%s: no epochs in it", csv)
    exit status 2
}

# Okabe and Ito's colours stay apart for colour-blind readers.
array colour[3] = ["#0072B2", "#D55E00", "#009E73"]

set datafile separator ","
stats csv using 7 skip 1 nooutput name "accuracy"
stats csv using 3 skip 1 nooutput name "epoch"
set terminal pngcairo size 1000, 460 font "sans,11"
set output ARG2

# The first epochs of a large batch may be anywhere; what is compared is above 60 %.
low = floor(accuracy_min)
if (low < 60 && accuracy_max > 65) low = 60
set yrange [low : ceil(accuracy_max + 0.3)]
set xrange [0.5 : epoch_max + 0.5]
set xtics 1, ceil(epoch_max / 12.0)
set xlabel "epoch"
set ylabel split . " accuracy (%)"
set grid back linetype 1 linewidth 1 linecolor rgb "#dddddd"
set border 3
set tics nomirror
set key bottom right reverse Left
set multiplot layout 1, words(batches) title sprintf(\
    "largo-train: the same epochs at %d batch sizes%s", words(batches), \
    seeds > 1 ? sprintf(" (lines: mean of %d seeds)", seeds) : "")

# NaN hides the lines of other runs.
accuracy(optimizer, batch) = strcol(1) eq optimizer && strcol(2) eq batch ? column(7) : NaN

do for [batch in batches] {
    set title "batch " . batch
    plot for [i = 1 : words(optimizers)] csv skip 1 \
             using 3:(accuracy(word(optimizers, i), batch)) smooth unique \
             with lines linewidth 2 linecolor rgb colour[i] title word(optimizers, i), \
         for [i = 1 : words(optimizers)] csv skip 1 \
             using 3:(accuracy(word(optimizers, i), batch)) \
             with points pointtype 7 pointsize 0.6 linecolor rgb colour[i] notitle
}
unset multiplot
