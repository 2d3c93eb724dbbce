import { createHash } from 'node:crypto'
import type { Html } from './html.ts'

/** Styles of the reference page: the list of operations is at the side, or on top on narrow screens. */
const css = `
:root { color-scheme: light dark; --text: #1c2733; --soft: #5a6876; --line: #d9dfe5; --page: #fff; --code: #f1f4f7; --link: #0b63b5 }
@media (prefers-color-scheme: dark) {
  :root { --text: #d8dee6; --soft: #94a1ae; --line: #303a44; --page: #14191f; --code: #1f272f; --link: #74b3f0 }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 84rem; padding: 0 1.5rem; font: 15px/1.5 system-ui, sans-serif;
  display: grid; grid-template-columns: 19rem minmax(0, 1fr); column-gap: 2.5rem;
  color: var(--text); background: var(--page); overflow-wrap: anywhere }
header { grid-column: 1 / 3; border-bottom: 1px solid var(--line); padding: 1rem 0 .5rem }
h1 { font-size: 1.6rem; margin: 0 } h1 small, .of { color: var(--soft); font-weight: normal; font-size: .85rem }
h2 { font-size: 1.25rem; margin: 2rem 0 0 } h3 { font-size: 1.05rem; margin: .5rem 0 } h4 { font-size: .85rem; margin: 1rem 0 .2rem; color: var(--soft) }
p { margin: .4rem 0 } a { color: var(--link); text-decoration: none } a:hover { text-decoration: underline }
nav { font-size: 13px; position: sticky; top: 0; max-height: 100vh; overflow: auto; padding: 0 0 2rem }
nav ul { list-style: none; margin: .2rem 0; padding: 0 } nav h2 { font-size: 1em; margin: 1rem 0 0 }
nav li a { display: flex; padding: .1rem 0 } nav .method { flex: 0 0 3.2rem; font-size: 10.5px; line-height: 20px }
.method { font-weight: 600; color: var(--soft) } h3 .method { color: var(--link) }
section { border-top: 1px solid var(--line); padding: .6rem 0 1rem; scroll-margin-top: .5rem } h2 + section { border-top: 0 }
section:target { background: linear-gradient(90deg, var(--link) 3px, transparent 3px); padding-left: 1rem }
table { border-collapse: collapse; width: 100% } tr + tr > td { border-top: 1px solid var(--line) }
td { vertical-align: top; padding: .25rem 1rem .25rem 0; overflow-wrap: break-word } td:first-child { width: 13rem } td:nth-child(2) { width: 19rem }
.replies > tbody > tr > td:first-child { width: 4rem } .replies > tbody > tr > td:nth-child(2) { width: auto } .replies > tbody > tr > td:last-child { width: 16rem }
td table { width: auto; margin-left: .7rem } td table td:nth-child(n) { width: auto } td table td:first-child { white-space: nowrap }
code { font: .9em ui-monospace, monospace; background: var(--code); border-radius: 3px; padding: .05em .25em } h3 code { background: none; padding: 0; font-size: 1em }
summary { cursor: pointer; color: var(--soft); font-size: .85rem; margin-top: .6rem }
@media (max-width: 60rem) {
  body { display: block; padding: 0 1rem }
  nav { position: static; max-height: 45vh; border-bottom: 1px solid var(--line) }
  td { display: block; padding: 0 0 .1rem; overflow-wrap: anywhere } td:nth-child(n), .replies > tbody > tr > td:nth-child(n) { width: auto }
  tr { display: block; padding: .35rem 0 } tr + tr { border-top: 1px solid var(--line) } tr + tr > td { border-top: 0 }
  td:empty { display: none }
}
`

/** The only unescaped content: the constant above. */
export const styleSheet: Html = { html: `<style>${css}</style>` }

const hash = createHash('sha256').update(css).digest('base64')

/** Content security policy that allows this style sheet and nothing else. */
export const styleOnlyPolicy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
