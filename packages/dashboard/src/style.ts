/** Style of the page; colours follow the reader's light or dark setting. */
export const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dde3, #333a44); --soft: light-dark(#5b6673, #98a3b1);
  --bar: light-dark(#2f6fb2, #6aa9e9); --good: light-dark(#1f8a4c, #4cc38a); --warn: light-dark(#b26b00, #f0a13c); --bad: light-dark(#c0362c, #ff7b70); }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1.5rem; max-width: 76rem; background: light-dark(#fff, #14181d); color: light-dark(#1b232c, #e6ebf1); }
header { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; align-items: baseline; }
h1 { font-size: 1.35rem; margin: 0; letter-spacing: .01em; }
h2 { font-size: 1rem; margin: 1.8rem 0 .5rem; color: var(--soft); font-weight: 600; }
p { margin: 0; color: var(--soft); }
section > div { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 500; color: var(--soft); font-size: .85rem; }
th, td { padding: .4rem .8rem .4rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.n, th.n { text-align: right; }
small { color: var(--soft); }
meter { width: 6rem; height: .7rem; vertical-align: middle; margin-right: .5rem; }
.dot { display: inline-block; width: .6rem; height: .6rem; border-radius: 50%; margin-right: .45rem; background: var(--soft); }
.ready .dot { background: var(--good); } .draining .dot, .not-ready .dot { background: var(--warn); } .dead .dot, .out .dot { background: var(--bad); }
.alarm { color: var(--bad); }
`;
