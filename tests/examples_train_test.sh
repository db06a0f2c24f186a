#!/bin/sh
# What largo-train says to bad input, and that it trains.
#
#   examples_train_test.sh PROGRAM DATA_DIR      DATA_DIR holds the four files of Fashion-MNIST
#
# Exit status: 0 all is well, 1 a check failed, 77 the data are not there (skipped).
set -u

[ $# -eq 2 ] || { echo "usage: $0 PROGRAM DATA_DIR" >&2; exit 1; }
program=$1
data=$2
[ -f "$data/train-images-idx3-ubyte.gz" ] || { echo "skipped: no data in $data"; exit 77; }

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

fail()
{
    echo "FAILED: $*"
    sed 's/^/    stdout: /' "$work/out" | head -5
    sed 's/^/    stderr: /' "$work/err" | head -5
    failures=$((failures + 1))
}

# One thread unless the arguments say otherwise: on a busy machine two threads that wait for each
# other in every small product take ten times as long.
run()
{
    "$program" --threads 1 "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
}

# refuse TEXT ARGUMENTS...: exit code 2, one line on stderr that contains TEXT, nothing on stdout.
refuse()
{
    text=$1
    shift
    run "$@"
    [ "$code" -eq 2 ] || { fail "exit code $code, not 2: $*"; return; }
    [ "$(wc -l <"$work/err")" -eq 1 ] || { fail "not one line: $*"; return; }
    [ ! -s "$work/out" ] || { fail "something on stdout: $*"; return; }
    grep -qF -- "$text" "$work/err" || fail "no '$text': $*"
}

# expect CODE ARGUMENTS...
expect()
{
    wanted=$1
    shift
    run "$@"
    [ "$code" -eq "$wanted" ] || fail "exit code $code, not $wanted: $*"
}

# said TEXT, shown TEXT: in stderr, in stdout of the last run.
said() { grep -qF -- "$1" "$work/err" || fail "stderr lacks '$1'"; }
shown() { grep -qF -- "$1" "$work/out" || fail "stdout lacks '$1'"; }

accuracy() { tail -n 1 "$work/out" | awk '{ print $NF }'; }

# at_least NUMBER: the accuracy of the last run.
at_least()
{
    awk -v a="$(accuracy)" -v b="$1" 'BEGIN { exit !(a >= b && a <= 100) }' ||
        fail "accuracy $(accuracy) is below $1"
}

# ---- a small data set: the first 2,000 and 500 images; zlib reads plain files too ----------------

# big_endian NUMBER: four bytes.
big_endian()
{
    printf "\\$(printf %03o $(($1 >> 24 & 255)))\\$(printf %03o $(($1 >> 16 & 255)))"
    printf "\\$(printf %03o $(($1 >> 8 & 255)))\\$(printf %03o $(($1 & 255)))"
}

# images FROM COUNT, labels FROM COUNT: an IDX file of the first COUNT entries.
images()
{
    big_endian 2051; big_endian "$2"; big_endian 28; big_endian 28
    zcat "$1" | head -c $((16 + 784 * $2)) | tail -c +17
}
labels()
{
    big_endian 2049; big_endian "$2"
    zcat "$1" | head -c $((8 + $2)) | tail -c +9
}

small=$work/small
mkdir "$small"
images "$data/train-images-idx3-ubyte.gz" 2000 >"$small/train-images-idx3-ubyte.gz"
labels "$data/train-labels-idx1-ubyte.gz" 2000 >"$small/train-labels-idx1-ubyte.gz"
images "$data/t10k-images-idx3-ubyte.gz" 500 >"$small/t10k-images-idx3-ubyte.gz"
labels "$data/t10k-labels-idx1-ubyte.gz" 500 >"$small/t10k-labels-idx1-ubyte.gz"

# damaged NAME: a fresh copy of the small set in $bad, whose file NAME a test then spoils.
damaged()
{
    bad=$work/bad
    rm -rf "$bad"
    cp -r "$small" "$bad"
    file=$bad/$1-ubyte.gz
}

# ---- options --------------------------------------------------------------------------------------

refuse "unrecognized option '--bogus'" --bogus
refuse "requires an argument" --batch
refuse "'stray'" stray
refuse "unknown 'adam'; must be sgd, adamw or lamb" --optimizer adam
refuse "unknown ''" --optimizer ''
refuse "unknown ''" --compare --optimizer lamb,
refuse "stands twice" --compare --optimizer lamb,sgd,lamb
refuse "only --compare takes more than one" --optimizer lamb,sgd
refuse "--scaling: unknown 'cubic'; must be sqrt, linear or none" --scaling cubic
refuse "--schedule: unknown 'step'; must be linear, cosine or constant" --schedule step
refuse "--batch: 0 is out of range" --batch 0
refuse "--batch: -5 is out of range" --batch -5
refuse "--batch: '12x' is not a whole number" --batch 12x
refuse "--batch: '1e3' is not a whole number" --batch 1e3
refuse "--batch: '' is not a whole number" --batch ''
refuse "--batch: ' 5' is not a whole number" --batch ' 5'
refuse "out of range" --batch 99999999999999999999
refuse "--batch: 2001 is out of range; must be 1 to 2000" --data-dir "$small" --batch 2001
refuse "batch: 8192 is out of range; must be 1 to 2000" --data-dir "$small" --compare
refuse "--epochs: 0 is out of range; must be 1 to" --epochs 0
refuse "--epochs: 'many' is not" --epochs many
refuse "--lr: -0.1 is out of range" --lr -0.1
refuse "--lr: 0 is out of range" --lr 0
refuse "--lr: 'nan' is not a number" --lr nan
refuse "--lr: 'inf' is not a number" --lr inf
refuse "--lr: '0x1' is not a number" --lr 0x1
refuse "--lr: '0.1.2' is not a number" --lr 0.1.2
refuse "--lr: 1e999 is out of range" --lr 1e999
refuse "--warmup: -1 is out of range" --warmup -1
refuse "--weight-decay: -1e-4 is out of range" --weight-decay -1e-4
refuse "--seed: -1 is out of range" --seed -1
refuse "--threads: 0 is out of range; must be 1 to 256" --threads 0
refuse "--seeds: 0 is out of range" --compare --seeds 0
refuse "--seeds: only together with --compare" --seeds 3
refuse "--batch: not together with --compare" --compare --batch 256
refuse "--csv: cannot write $work/none/log.csv: No such file" \
    --data-dir "$small" --batch 100 --csv "$work/none/log.csv"
refuse "--csv: cannot write $work: Is a directory" --data-dir "$small" --batch 100 --csv "$work"
[ ! -c /dev/full ] ||
    refuse "--csv: cannot write /dev/full: No space" --data-dir "$small" --batch 100 --csv /dev/full

# A log that exists survives an error in the options or the data.
for folder in "$small" "$data"; do
    cp "$folder/t10k-labels-idx1-ubyte.gz" "$work/data"
    refuse "holds data" --data-dir "$small" --batch 100 --csv "$work/data"
    cmp -s "$folder/t10k-labels-idx1-ubyte.gz" "$work/data" || fail "data were replaced by a log"
done
echo kept >"$work/log.csv"
refuse "out of range" --data-dir "$small" --batch 2001 --csv "$work/log.csv"
[ "$(cat "$work/log.csv")" = kept ] || fail "the old log was lost"

# ---- data files -----------------------------------------------------------------------------------

refuse "cannot open $work/nowhere/train-images-idx3-ubyte.gz: No such file" \
    --data-dir "$work/nowhere"

damaged t10k-labels-idx1
rm "$file"
refuse "cannot open $file" --data-dir "$bad" --batch 100

damaged train-images-idx3
head -c 1000000 "$small/train-images-idx3-ubyte.gz" >"$file"
refuse "$file: truncated or damaged after 999984 of 1568000 bytes" --data-dir "$bad"

damaged train-images-idx3
gzip -c "$small/train-images-idx3-ubyte.gz" | head -c 400000 >"$file"
refuse "$file: truncated or damaged after" --data-dir "$bad"

damaged t10k-images-idx3
: >"$file"
refuse "$file: truncated or damaged after 0 of 16 bytes" --data-dir "$bad" --batch 100

damaged train-labels-idx1
cp "$small/train-images-idx3-ubyte.gz" "$file"
refuse "$file: magic number is 0x00000803; an IDX file of labels begins with 0x00000801" \
    --data-dir "$bad"

damaged train-images-idx3
{ big_endian 2051; big_endian 4294967295; big_endian 28; big_endian 28; } >"$file"
refuse "$file: the header says 4294967295 entries; must be 1 to 1000000" --data-dir "$bad"

damaged train-images-idx3
{ big_endian 2051; big_endian 2000; big_endian 32; big_endian 32; } >"$file"
refuse "$file: images are 32 x 32; must be 28 x 28" --data-dir "$bad"

damaged train-labels-idx1
{ big_endian 2049; big_endian 1999; tail -c 1999 "$small/train-labels-idx1-ubyte.gz"; } >"$file"
refuse "2000 images in train-images-idx3-ubyte.gz but 1999 labels" --data-dir "$bad"

damaged train-labels-idx1
{ head -c 508 "$small/train-labels-idx1-ubyte.gz"; printf '\012'
  tail -c 1499 "$small/train-labels-idx1-ubyte.gz"; } >"$file"
refuse "$file: label 10 at index 500; must be 0 to 9" --data-dir "$bad"

damaged train-labels-idx1
echo more >>"$file"
refuse "$file: goes on after the 2000 entries" --data-dir "$bad"

refuse "--validate: holds out 5000 images, but there are only 2000" --data-dir "$small" --validate

# ---- it trains ------------------------------------------------------------------------------------

expect 0 --help
shown "Usage: "
shown "default 8192"
expect 0 --version
expect 0 --check-gradients

for optimizer in sgd adamw lamb; do
    expect 0 --data-dir "$small" -o $optimizer -b 100 -e 4
    at_least 60
done

# A batch of several slices, the last one short, and the whole set as one batch.
expect 0 --data-dir "$small" -b 1999 -e 30
at_least 60
expect 0 --data-dir "$small" -b 2000 -e 1 --schedule cosine --scaling linear --warmup 0
expect 0 --data-dir "$small" -b 1 -e 1
at_least 50

# The same seed gives the same accuracy for every number of threads, another one another run.
expect 0 --data-dir "$small" -b 64 -e 2 -s 5 --csv "$work/one.csv" --quiet
[ ! -s "$work/err" ] || fail "--quiet talks"
first=$(accuracy)
expect 0 --data-dir "$small" -b 64 -e 2 -s 5 -t 2 --csv "$work/two.csv"
[ "$(accuracy)" = "$first" ] || fail "accuracy $(accuracy) with 2 threads, $first with 1"
cut -d, -f1-7 "$work/one.csv" >"$work/one.cut"
cut -d, -f1-7 "$work/two.csv" | cmp -s - "$work/one.cut" || fail "logs of 1 and 2 threads differ"
expect 0 --data-dir "$small" -b 64 -e 2 -s 6 --csv "$work/two.csv" --quiet
cut -d, -f1-7 "$work/two.csv" | cmp -s - "$work/one.cut" && fail "the seed changes nothing"

head -n 1 "$work/one.csv" | grep -q '^optimizer,batch,epoch,step,lr,train_loss,test_accuracy,' ||
    fail "heading of the log"
awk -F, 'NF != 10 { exit 1 } END { exit NR != 3 }' "$work/one.csv" || fail "lines of the log"
tail -n 1 "$work/one.csv" | grep -q '^lamb,64,2,62,' || fail "last line of the log"

# Plain lines in a pipe, a bar on a terminal.
expect 0 --data-dir "$small" -b 64 -e 2
grep -q "$(printf '\r')" "$work/err" && fail "a carriage return in a pipe"
said "epoch 2/2"
if command -v script >/dev/null; then
    script -qec "'$program' -t 1 -d '$small' -b 8 -e 2" /dev/null >"$work/out" 2>"$work/err" </dev/null
    grep -q '\[#*\.*\] loss' "$work/out" || fail "no bar on a terminal"
fi

# Divergence is told and has exit code 1; so has a table that cannot be written.
expect 1 --data-dir "$small" -o sgd -b 64 -e 3 --lr 1e6
said "skipped"
said "diverged"
expect 1 --data-dir "$small" -o lamb -b 64 -e 3 --lr 1000 --quiet
if [ -c /dev/full ]; then
    "$program" -t 1 -d "$small" -b 64 -e 1 -q >/dev/full 2>"$work/err"
    code=$?
    : >"$work/out"
    [ $code -eq 1 ] || fail "exit code $code with a full stdout"
fi

# In the foreground, timeout signals the program alone: otherwise it signals its whole group as well,
# and the second signal, which ends the program at once, may come before the first is seen to.
timeout --foreground --preserve-status -s INT 2 "$program" -t 1 -d "$small" -b 1 -e 1000 >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 130 ] || fail "exit code $code after SIGINT"
said "interrupted after"

# The real data: validation split, and a comparison in one epoch.
expect 0 --data-dir "$data" --validate -e 3 -o lamb
shown "validation %"
at_least 65
expect 0 --data-dir "$data" --compare -o adamw,sgd -e 1 --csv "$work/compare.csv"
shown "batch 8192, 7 steps"
at_least 30
[ "$(wc -l <"$work/compare.csv")" -eq 5 ] || fail "lines of the comparison's log"

[ $failures -eq 0 ] && echo "all checks passed"
[ $failures -eq 0 ]
