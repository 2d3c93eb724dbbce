/** The reference for people, made of the OpenAPI document. The page loads nothing and runs nothing. */
import { createHash } from 'node:crypto'
import type { OpenApi } from '@atoll/contracts/openapi'
import { html } from './html.ts'
import type { Html } from './html.ts'
import { ReferenceDocument } from './reference-document.ts'
import type { ContentObject, OperationObject } from './reference-document.ts'
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
  const groups = [...Map.groupBy(operations, ({ operation }) => groupOf(operation))]
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
      <nav>
        ${groups.map(([group, members]) => renderIndex(group, members))}
        <p><a href="#schemas">Schemas</a></p>
      </nav>
      <main>
        <h1>${info.title} <small>${info.version}</small></h1>
        <p>
          Send an API key as <code>X-API-Key</code> or an access token as
          <code>Authorization: Bearer …</code>. Failures have the body <a href="#Error">Error</a>.
          As a document: <a href="/openapi.json">OpenAPI 3.1</a>. Fields with a star are always
          there.
        </p>
        ${groups.flatMap(([, members]) => members.map(renderOperation))}
        <h2 id="schemas">Schemas</h2>
        ${schemas}
      </main>
    </html> `
  return { body: page.html, headers }
}

interface Listed {
  readonly method: string
  readonly path: string
  readonly operation: OperationObject
}

/** `sandbox.create` is of the sandboxes. */
function groupOf({ operationId }: OperationObject): string {
  return operationId.replace(/\..*$/, '')
}

function renderIndex(group: string, members: readonly Listed[]): Html {
  const items = members.map(
    ({ method, path, operation }) =>
      html`<li>
        <a href="#${operation.operationId}"><b>${method.toUpperCase()}</b> ${path}</a>
       `,
  )
  return html`<h2>${group}</h2>
    <ul>
      ${items}
    </ul> `
}

function renderOperation({ method, path, operation }: Listed): Html {
  const { operationId, summary, parameters, requestBody, responses } = operation
  const rows = parameters.map(
    (one) =>
      html`<tr>
        <td>
          <code>${one.name}</code>${one.required ? html`<b title="required">*</b>` : undefined}
        </td>
        <td>${one.in}</td>
        <td>${renderSchema(one.schema)}</td>
        <td>${one.description}</td>
      </tr> `,
  )
  const replies = Object.entries(responses).map(
    ([status, { description, content, headers: told = {} }]) =>
      html`<tr>
        <td><b>${status}</b></td>
        <td>${description}${Object.keys(told).map((name) => html` <code>${name}</code>`)}</td>
        <td>${content && renderContent(content)}</td>
      </tr> `,
  )
  return html`<section id="${operationId}">
    <h3><b>${method.toUpperCase()}</b> ${path}</h3>
    <p>${summary}.</p>
    <p>
      <small>${renderSecurity(operation)} · <code>${operationId}</code></small>
    </p>
    ${
      rows.length > 0
        ? html`<h4>Parameters</h4>
            <table>
              ${rows}
            </table>`
        : undefined
    }
    ${
      requestBody &&
      html`<h4>Body</h4>
        ${renderContent(requestBody.content)}`
    }
    <h4>Replies</h4>
    <table>
      ${replies}
    </table>
  </section> `
}

function renderContent(content: ContentObject): Html {
  return html`${Object.entries(content).map(([type, { schema }]) =>
    type === 'application/json' ? renderSchema(schema) : html`<code>${type}</code>`,
  )}`
}

const schemeNames: Readonly<Record<string, string>> = {
  ApiKeyAuth: 'X-API-Key',
  AccessTokenAuth: 'Authorization: Bearer',
  AdminApiKeyAuth: 'X-Admin-Token',
  TeamAuth: 'X-Team-ID',
}

function renderSecurity({ security }: OperationObject): string {
  if (security.length === 0) return 'Open to everybody'
  const ways = security.map((way) => Object.keys(way).map((name) => schemeNames[name] ?? name))
  return `Needs ${ways.map((names) => names.join(' with ')).join(', or ')}`
}

const css = `
body { margin: 0 auto; max-width: 80rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif;
  display: grid; grid-template-columns: 20rem 1fr; gap: 2rem; color: #1c2733; background: #fff }
nav { font-size: 13px; position: sticky; top: 0; max-height: 100vh; overflow: auto }
nav ul { list-style: none; padding: 0 } nav h2 { font-size: 1em; margin: 1em 0 0 }
section { border-top: 1px solid #8884; padding: .5rem 0 } a { color: #0b63b5 }
table { border-collapse: collapse } td { vertical-align: top; padding: .15rem .8rem .15rem 0 }
code { font: 13px ui-monospace, monospace } h4 { margin: .8rem 0 .2rem }
@media (max-width: 60rem) { body { display: block } nav { position: static; max-height: none } }
@media (prefers-color-scheme: dark) { body { color: #d8dee6; background: #14191f } a { color: #74b3f0 } }
`

/** The one thing that is put in as it is: it comes from above. */
const styleSheet: Html = { html: `<style>${css}</style>` }

const headers = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(css).digest('base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
}
