import assert from 'node:assert/strict'
import { test } from 'node:test'
import { html, prose } from './html.ts'

test('plain values are escaped, and results of html are not escaped again', () => {
  const bad = `<script>"&'</script>`
  const escaped = '&#60;script&#62;&#34;&#38;&#39;&#60;/script&#62;'
  assert.equal(html`<p title="${bad}">${bad}</p>`.html, `<p title="${escaped}">${escaped}</p>`)
  assert.equal(html`${[html`<b>${'<'}</b>`, html`${7}`]}${undefined}`.html, '<b>&#60;</b>7')
})

test('between backticks is code, escaped like the rest', () => {
  const shown = 'a <code>b&#60;</code> &#38; c'
  assert.equal(prose('a `b<` & c').html, shown)
})
