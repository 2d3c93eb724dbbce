/** API reference page, rendered from the OpenAPI document. The page loads no resources and runs no scripts. */
import type { OpenApi } from '@atoll/contracts/openapi'
import { html } from './html.ts'
import type { Html } from './html.ts'
import { ReferenceDocument } from './reference-document.ts'
import { renderOperation } from './reference-operation.ts'
import type { Listed } from './reference-operation.ts'
import { styleOnlyPolicy, styleSheet } from './reference-style.ts'
import { renderSchema } from './schema-fields.ts'

export interface ReferencePage {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export function renderReference(openApi: OpenApi): ReferencePage {
  const { info, paths, components } = ReferenceDocument.parse(openApi)
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )
  const groups = [...Map.groupBy(operations, groupOf)]
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      html`<section id="${name}">
        <h3>${name}</h3>
        ${renderSchema(schema)}
      </section> `,
  )
  const page = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>${info.title} ${info.version}</title>
      ${styleSheet}
      <header>
        <h1>${info.title} <small>${info.version}</small></h1>
        <p>
          Send an API key as <code>X-API-Key</code> or an access token as
          <code>Authorization: Bearer …</code>; a user of several teams names one as
          <code>X-Team-ID</code>. Failures have the body <a href="#Error">Error</a>. Fields with a
          star are always there. As a document: <a href="/openapi.json">OpenAPI 3.1</a>.
        </p>
      </header>
      <nav>
        ${groups.map(renderIndex)}
        <h2><a href="#schemas">Schemas</a></h2>
      </nav>
      <main>
        ${groups.map(renderGroup)}
        <h2 id="schemas">Schemas</h2>
        ${schemas}
      </main>
    </html> `
  return { body: page.html, headers }
}

type Group = readonly [name: string, members: readonly Listed[]]

/** Maps `accessToken.create` to the group "Access token". */
function groupOf({ operation }: Listed): string {
  const [first = ''] = operation.operationId.split('.')
  const words = first.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function renderIndex([name, members]: Group): Html {
  const items = members.map(
    ({ method, path, operation }) =>
      html`<li>
        <a href="#${operation.operationId}"
          ><span class="method">${method.toUpperCase()}</span><span>${breakable(path)}</span></a
        >
      </li> `,
  )
  return html`<h2>${name}</h2>
    <ul>
      ${items}
    </ul> `
}

/** Allows a line break after each slash of a path. */
function breakable(path: string): Html {
  const parts = path.split('/').filter(Boolean)
  return html`${parts.map((part) => html`/<wbr />${part}`)}`
}

function renderGroup([name, members]: Group): Html {
  return html`<h2>${name}</h2>
    ${members.map(renderOperation)}`
}

const headers = {
  'Content-Security-Policy': styleOnlyPolicy,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}
