/*
 * The style of the HTML report. Text keeps a contrast of at least 4.5:1 in both themes; the colours of parts and kinds come from parts.def
 * and mean the same in both. Everything is static: no script, no web font, no image.
 */
#ifndef INFERSCOPE_REPORT_HTML_STYLE_H
#define INFERSCOPE_REPORT_HTML_STYLE_H

static const char HTML_STYLE[] =
	":root{--bg:#f4f6f8;--card:#fff;--ink:#17202b;--soft:#55606e;--line:#dde3e9;--track:#e9edf1;--link:#00598c;--good:#00694c;--warn:#8a4b00;--bad:#a83200;"
	"--goodbg:#e3f4ee;--warnbg:#fdf1dc;--badbg:#fce9e0;--shade:rgba(20,30,45,.07);--heat:rgba(0,114,178,.11);--mono:ui-monospace,'SF Mono','Cascadia Mono','DejaVu Sans Mono',Menlo,Consolas,monospace}"
	"@media (prefers-color-scheme:dark){:root{--bg:#11161c;--card:#1a212a;--ink:#e7ecf1;--soft:#a3afbc;--line:#2d3743;--track:#2a333e;--link:#7cc4ee;--good:#58d3a8;--warn:#f3b755;--bad:#ff9d73;"
	"--goodbg:#14312a;--warnbg:#3a2c12;--badbg:#3f2115;--shade:rgba(0,0,0,.35);--heat:rgba(86,180,233,.16)}}"
	"*{box-sizing:border-box}html{color-scheme:light dark;scroll-padding-top:4rem;-webkit-text-size-adjust:100%}"
	"body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',Ubuntu,Cantarell,'DejaVu Sans',sans-serif;font-variant-numeric:tabular-nums}"
	"main{max-width:1120px;margin:0 auto;padding:1.25rem 1rem 3rem}a{color:var(--link)}"
	"code,.mono{font-family:var(--mono);font-size:.9em;overflow-wrap:anywhere}"
	".skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:.5rem;background:var(--card);padding:.4rem .8rem;z-index:9}"
	":focus-visible{outline:3px solid #0072b2;outline-offset:2px;border-radius:4px}"
	/* the bar at the top */
	".top{position:sticky;top:0;z-index:5;background:var(--card);border-bottom:1px solid var(--line)}"
	".top>div{max-width:1120px;margin:0 auto;padding:.55rem 1rem;display:flex;gap:1.2rem;align-items:center;flex-wrap:wrap}"
	".brand{font-weight:700;letter-spacing:-.01em;display:flex;align-items:center;gap:.5rem}.brand i{display:inline-grid;grid-template-columns:repeat(3,5px);gap:2px;align-items:end;height:16px}"
	".brand i b{display:block;background:#0072b2;border-radius:1px;height:8px}.brand i b:nth-child(2){background:#e69f00;height:16px}.brand i b:nth-child(3){background:#009e73;height:11px}"
	"nav{display:flex;gap:.2rem 1rem;flex-wrap:wrap;font-size:.9rem;margin-left:auto}nav a{text-decoration:none;color:var(--soft)}nav a:hover{color:var(--ink);text-decoration:underline}"
	/* cards */
	"section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:1.15rem 1.3rem;margin:0 0 1rem;box-shadow:0 1px 2px var(--shade)}"
	"h1{font-size:2.3rem;line-height:1.1;margin:.1rem 0 .3rem;letter-spacing:-.025em}h2{font-size:1.12rem;margin:0 0 .7rem;letter-spacing:-.01em}h2 small{font-weight:400;color:var(--soft);font-size:.85rem;margin-left:.5rem}"
	"p{margin:.3rem 0}.soft{color:var(--soft)}.small{font-size:.86rem}"
	/* verdict */
	".verdict{border-left:8px solid var(--mark,#8a94a0);display:grid;grid-template-columns:minmax(0,1.35fr) minmax(0,1fr);gap:1.2rem 2rem;align-items:center}"
	".verdict .eyebrow{text-transform:uppercase;letter-spacing:.09em;font-size:.74rem;font-weight:600;color:var(--soft);margin:0}"
	".verdict .sentence{font-size:1.06rem;max-width:62ch}.v-cpu_bound{--mark:#0072b2}.v-gpu_bound{--mark:#009e73}.v-memory_bound{--mark:#cc79a7}.v-balanced{--mark:#56b4e9}"
	".tiles{display:grid;grid-template-columns:1fr 1fr;gap:.6rem;margin:0}.tiles p{margin:0;border:1px solid var(--line);border-radius:9px;padding:.5rem .75rem}"
	".tiles p>span{color:var(--soft);font-size:.8rem}.tiles p>b{display:block;font-size:1.28rem;font-weight:650;letter-spacing:-.015em;line-height:1.25}.tiles small{display:inline-block;white-space:nowrap;font-size:.78rem;font-weight:400;color:var(--soft);letter-spacing:0;margin-left:.15rem}"
	".meter{display:block;height:5px;border-radius:3px;background:var(--track);margin-top:.3rem;overflow:hidden}.meter i{display:block;height:100%;background:var(--mark,#0072b2)}"
	/* stacked bars: a gap of the card's colour separates neighbours for every eye */
	".stack{display:flex;height:2.4rem;border-radius:7px;overflow:hidden;background:var(--track);gap:2px}.stack span{min-width:2px;display:flex;align-items:center;justify-content:center;font-size:.82rem;font-weight:600;white-space:nowrap;overflow:hidden;color:#10161d}"
	".stack.thin{height:1rem;border-radius:4px;gap:1px;min-width:9rem}.stack .p-python,.stack .p-runnable{color:#fff}"
	".hatch{background-image:repeating-linear-gradient(135deg,rgba(0,0,0,.17) 0 2px,transparent 2px 7px)}.dots{background-image:radial-gradient(rgba(255,255,255,.55) 1.2px,transparent 1.4px);background-size:7px 7px}.stack .dots{text-shadow:none}"
	".legend{list-style:none;display:grid;grid-template-columns:repeat(auto-fill,minmax(15.5rem,1fr));gap:.25rem 1.4rem;margin:.9rem 0 0;padding:0}.legend li{display:grid;grid-template-columns:.95rem 1fr auto;gap:.55rem;align-items:center}"
	".legend b{font-weight:650}.key{width:.95rem;height:.95rem;border-radius:3px;display:inline-block;box-shadow:inset 0 0 0 1px rgba(0,0,0,.18)}"
	/* facts about the data */
	".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(20rem,1fr));gap:.55rem 1.6rem;margin:0;padding:0;list-style:none}.facts li{display:grid;grid-template-columns:3.6rem 1fr;gap:.7rem;align-items:start}"
	".chip{display:inline-block;border-radius:99px;padding:.05rem .6rem;font-size:.76rem;font-weight:650;text-align:center;white-space:nowrap;background:var(--track);color:var(--ink)}"
	".s-ok,.s-info{color:var(--good);background:var(--goodbg)}.s-note,.s-medium,.s-low{color:var(--warn);background:var(--warnbg)}.s-bad,.s-high{color:var(--bad);background:var(--badbg)}.s-info,.s-low{color:var(--link);background:var(--track)}"
	".q-bad{border-color:var(--bad);border-width:2px}.facts strong{font-weight:600}.facts p{margin:0;color:var(--soft);font-size:.86rem}"
	/* findings */
	".finding{border:1px solid var(--line);border-radius:10px;margin:.7rem 0 0;overflow:hidden}.finding>summary{display:grid;grid-template-columns:auto 1fr auto auto;gap:.8rem;align-items:center;padding:.75rem 1rem;cursor:pointer;list-style:none}"
	".finding>summary::-webkit-details-marker{display:none}.finding>summary::after{content:'\\25be';color:var(--soft)}.finding[open]>summary::after{content:'\\25b4'}.finding>summary:hover{background:var(--shade)}"
	".finding .title{font-size:1rem;font-weight:650}.win{text-align:right;line-height:1.2}.win b{font-size:1.05rem}.win small{display:block;color:var(--soft);font-size:.76rem}"
	".body{padding:.2rem 1rem 1rem;display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1rem 1.6rem}.body h4,.sub{margin:.4rem 0 .3rem;font-size:.76rem;text-transform:uppercase;letter-spacing:.07em;color:var(--soft)}"
	".do{grid-column:1/-1;background:var(--goodbg);border-radius:8px;padding:.7rem .9rem}.do h4{color:var(--good);margin-top:0}.do p{margin:0}.do p::first-letter,.sentence::first-letter{text-transform:uppercase}.places{margin:0;padding:0;list-style:none}.places li{margin:0 0 .35rem}"
	/* tables */
	".scroll{overflow-x:auto;margin:0 -.3rem;padding:0 .3rem}table{border-collapse:collapse;width:100%;font-size:.9rem}th{font-weight:600;text-align:left;color:var(--soft);font-size:.8rem;border-bottom:1px solid var(--line);padding:.3rem .6rem;white-space:nowrap;vertical-align:bottom}"
	"th abbr{text-decoration:none;border-bottom:1px dotted var(--soft);cursor:help}td{padding:.38rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}tbody tr:last-child td{border-bottom:0}tbody tr:hover{background:var(--shade)}"
	".n{text-align:right;white-space:nowrap}td.n b{font-weight:650}.fn{min-width:14rem}.fn code{font-weight:600;font-size:.88rem}.fn .at{display:block;color:var(--soft);font-size:.79rem;font-family:var(--mono);overflow-wrap:anywhere}"
	".share{width:9.5rem;min-width:7rem}.bar{display:flex;height:.7rem;background:var(--track);border-radius:3px;overflow:hidden;margin-top:.35rem}.bar i{display:block;height:100%;background:#0072b2}.bar .wait{background-color:#8fb8d4;background-image:repeating-linear-gradient(135deg,rgba(0,40,70,.3) 0 2px,transparent 2px 6px)}"
	".kind{font-size:.7rem;color:var(--soft);border:1px solid var(--line);border-radius:4px;padding:0 .3rem;margin-left:.4rem;white-space:nowrap}"
	".pr{white-space:nowrap}.pr::before{content:'';display:inline-block;width:.62em;height:.62em;border-radius:50%;margin-right:.4em;border:1.5px solid var(--soft)}.pr-exact::before{background:#009e73;border-color:#009e73}.pr-counted::before{background:linear-gradient(90deg,#009e73 50%,transparent 50%);border-color:#009e73}.pr-sampled::before{border-style:dotted;border-color:#e69f00}.pr-estimated::before{background:linear-gradient(0deg,#e69f00 45%,transparent 45%);border-color:#e69f00}"
	/* flame graph and call tree */
	".flame{position:relative;overflow:hidden;border-radius:6px;margin:.4rem 0 .2rem}.flame span{position:absolute;height:19px;line-height:18px;font-size:11.5px;font-family:var(--mono);padding:0 4px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;color:#10161d;border:0 solid var(--card);border-width:0 1px 1px 0;border-radius:2px}"
	".flame .k0{background:#8ec5e8}.flame .k1{background:#7db7de}.flame .k2{background:#a3d0ee}.flame .k3{background:#93bfe6}.flame .kc{background:#f0b74a}.flame .kn{background:#7fd1b9}.flame .ku{background:#cfd6dd}.flame .kt{background:#33404e;color:#fff}"
	".keys{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;font-size:.82rem;color:var(--soft)}.keys span{display:inline-flex;gap:.4rem;align-items:center}"
	".tree{font-size:.87rem;line-height:1.65}.tree details details,.tree .leaf{margin-left:.62rem;padding-left:.5rem;border-left:1px solid var(--line)}.tree summary,.tree .leaf{padding:0 .3rem;border-radius:0 4px 4px 0;cursor:default;overflow-wrap:anywhere;background:linear-gradient(var(--heat),var(--heat)) no-repeat 0 50%/var(--w,0) 82%}.tree summary{cursor:pointer}.tree summary:hover,.tree .leaf:hover{background:var(--shade)}.tree .leaf{padding-left:1.4rem}"
	".tree b{display:inline-block;min-width:3.9rem;text-align:right;font-weight:650}.tree u{text-decoration:none;display:inline-block;min-width:5.1rem;text-align:right;color:var(--soft);margin-right:.7rem}.tree .at{color:var(--soft);font-size:.8rem;font-family:var(--mono)}"
	/* the rest */
	"details.more>summary{cursor:pointer;color:var(--link);margin:.5rem 0}dl.words{display:grid;grid-template-columns:minmax(8rem,auto) 1fr;gap:.35rem 1.2rem;margin:0}dl.words dt{font-weight:600}dl.words dd{margin:0;color:var(--soft)}"
	".again{display:block;background:var(--bg);border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;margin:.4rem 0 0;overflow-wrap:anywhere}footer{max-width:1120px;margin:0 auto;padding:0 1rem 2rem;color:var(--soft);font-size:.85rem}"
	".nb{white-space:nowrap}"
	"@media (max-width:760px){body{font-size:14.5px}section{padding:1rem .9rem;border-radius:10px}.verdict,.body{grid-template-columns:minmax(0,1fr)}h1{font-size:1.85rem}nav{margin-left:0}.facts{grid-template-columns:minmax(0,1fr)}.top{position:static}"
	".finding>summary{grid-template-columns:auto 1fr auto;gap:.5rem}.finding>summary .title{grid-column:1/-1;grid-row:2}.win{grid-column:2;text-align:right}dl.words{grid-template-columns:minmax(0,1fr)}dl.words dd{margin-bottom:.4rem}.tree details details,.tree .leaf{margin-left:.25rem;padding-left:.3rem}.share,.kind{display:none}.fn{min-width:10rem}}"
	"@media print{:root{--bg:#fff;--card:#fff;--ink:#000;--soft:#333;--line:#bbb;--track:#eee;--link:#000;--shade:transparent;--good:#00523b;--warn:#6b3a00;--bad:#8a2900;--goodbg:#fff;--warnbg:#fff;--badbg:#fff}"
	"body{font-size:10.5pt}.top{position:static;border:0}nav,.skip,.columns{display:none}main{padding:0;max-width:none}section{box-shadow:none;border:0;border-top:1px solid #999;border-radius:0;padding:.7rem 0;break-inside:auto}.verdict{border-left:6px solid var(--mark);padding-left:.8rem}"
	"*{-webkit-print-color-adjust:exact;print-color-adjust:exact}details::details-content{content-visibility:visible;block-size:auto;height:auto}.finding,tr,.facts li{break-inside:avoid}.finding>summary::after{content:''}.scroll{overflow:visible}h2,h3{break-after:avoid}}";

#endif
