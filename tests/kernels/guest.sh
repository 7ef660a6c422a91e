# Runs inside the guest: a static Python with a known stack, recorded; prints what came of it.
export PYTHONHOME=/usr
/exporter record --rate 199 --format folded -o /out -- /usr/bin/python3 -S -E /load.py 8 6 2>/log
echo "EXIT $?"
tail -3 /log
awk '/;leaf \(/ { known += $NF }
     /^<module> [^;]*;(rec [^;]*;){9}leaf \(/ { right += $NF }
     { all += $NF }
     END { printf "RESULT samples=%d of_leaf=%d right=%d\n", all, known, right }' /out
