import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderErrorPage, wantsPage } from './error-page.ts'

const browser = { 'user-agent': 'Mozilla/5.0 (X11) Firefox/140' }

const cases: [string, Record<string, string>, boolean][] = [
  ['a browser', browser, true],
  ['a browser that navigates', { ...browser, 'sec-fetch-mode': 'navigate' }, true],
  ['a browser that asks for JSON', { ...browser, accept: 'application/json' }, false],
  ['a browser that accepts both', { ...browser, accept: 'text/html, application/json' }, true],
  ['a script in a browser', { ...browser, 'sec-fetch-mode': 'cors' }, false],
  ['a WebSocket in a browser', { ...browser, 'sec-fetch-mode': 'websocket' }, false],
  [
    'an XMLHttpRequest without Sec-Fetch-Mode',
    { ...browser, 'x-requested-with': 'XMLHttpRequest' },
    false,
  ],
  [
    'a navigation that says it is a script',
    { ...browser, 'sec-fetch-mode': 'navigate', 'x-requested-with': 'x' },
    true,
  ],
  ['curl', { 'user-agent': 'curl/8' }, false],
  ['a client without headers', {}, false],
]

for (const [name, headers, expected] of cases) {
  test(`${name} gets ${expected ? 'a page' : 'JSON'}`, () => {
    assert.equal(wantsPage(headers), expected)
  })
}

test('the error page escapes its text', () => {
  const page = renderErrorPage({ title: '<b>"x"</b>', text: `</p><script>'&'</script>` })
  assert.match(page, /&lt;b&gt;&quot;x&quot;&lt;\/b&gt;/)
  assert.match(page, /&lt;\/p&gt;&lt;script&gt;&#39;&amp;&#39;&lt;\/script&gt;/)
  assert.match(page, /^<html[^]*<\/html>$/)
})
