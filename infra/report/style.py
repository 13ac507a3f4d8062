"""The style sheet: one column on a phone, up to three beside each other, light and dark.

The colours of the plots are told apart with any kind of colour blindness (Paul Tol, "bright").
"""

from __future__ import annotations

STYLE = """
:root{--back:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#5b6570;--line:#dfe3e8;--good:#1a7f37;--bad:#c0262d;
--c0:#4477aa;--c1:#ee6677;--c2:#ccbb44;--c3:#228833;--c4:#aa3377;--c5:#8a8f98}
@media (prefers-color-scheme:dark){:root{--back:#14171b;--card:#1e2227;--ink:#e7eaee;--soft:#a2abb5;
--line:#363c44;--good:#4cc26a;--bad:#ff7b80;--c0:#77aadd;--c1:#ff8a99;--c2:#ddcc66;--c3:#55bb77;
--c4:#dd77bb;--c5:#9aa1ab}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.45 system-ui,sans-serif}
header{padding:16px 16px 4px}h1{font-size:20px;margin:0;overflow-wrap:anywhere}
header p{margin:2px 0;color:var(--soft)}
.tiles{display:grid;gap:10px;padding:10px 16px;
grid-template-columns:repeat(auto-fit,minmax(100px,1fr))}
.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:8px 12px}
.tile b{display:block;font-size:22px}.tile span{color:var(--soft);font-size:13px}
.tile.good b{color:var(--good)}.tile.bad b{color:var(--bad)}
main{display:grid;gap:12px;padding:4px 16px 24px;
grid-template-columns:repeat(auto-fit,minmax(min(100%,340px),1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px;
min-width:0}
.wide{grid-column:1/-1}h2{font-size:15px;margin:0 0 8px}h3{font-size:14px;margin:12px 0 4px}
svg{display:block;width:100%;height:auto}
svg text{font-size:11px;fill:var(--soft)}svg text.end{text-anchor:end}
svg text.label{fill:var(--ink);font-size:12px}
.grid{stroke:var(--line)}.limit{stroke:var(--ink);stroke-width:2}.mark{opacity:.75}
.area{opacity:.55}
.c0{fill:var(--c0);background:var(--c0)}.c1{fill:var(--c1);background:var(--c1)}
.c2{fill:var(--c2);background:var(--c2)}
.c3{fill:var(--c3);background:var(--c3)}.c4{fill:var(--c4);background:var(--c4)}
.c5{fill:var(--c5);background:var(--c5)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;
margin:6px 0 0;padding:0;font-size:13px}
.legend i{flex:none;width:10px;height:10px;border-radius:2px;margin:5px 5px 0 0}
.legend li{display:flex;overflow-wrap:anywhere}
.note,.nothing{color:var(--soft);font-size:13px;margin:6px 0 0}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13px}
th{text-align:left;color:var(--soft);font-weight:normal}
th,td{padding:3px 10px 3px 0;border-bottom:1px solid var(--line);vertical-align:top}
td,th{white-space:nowrap}td.bad{color:var(--bad);font-weight:bold}
td.long{white-space:normal;overflow-wrap:anywhere;min-width:115px}
td:last-child:not(.number){white-space:normal;min-width:170px}
@media(max-width:600px){.told thead{position:absolute;clip-path:inset(50%)}
.told tr{display:flex;flex-wrap:wrap;gap:0 8px;padding:4px 0;border-bottom:1px solid var(--line)}
.told td{border:0;padding:0}.told td:empty{display:none}
.told td:last-child:not(.number){flex-basis:100%;min-width:0;overflow-wrap:anywhere}
.told td.number::before{content:attr(data-head) " ";color:var(--soft)}}
@media(min-width:1080px){.two{grid-column:span 2}}
.number{text-align:right;font-variant-numeric:tabular-nums}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""
