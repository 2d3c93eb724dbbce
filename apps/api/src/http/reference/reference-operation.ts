import { html, prose } from './html.ts'
import type { Html } from './html.ts'
import type { ContentObject, OperationObject } from './reference-document.ts'
import { renderSchema } from './schema-fields.ts'

export interface Listed {
  readonly method: string
  readonly path: string
  readonly operation: OperationObject
}

export function renderOperation({ method, path, operation }: Listed): Html {
  const { operationId, summary, parameters, requestBody, responses } = operation
  const [replies, failures] = partition(Object.entries(responses))
  return html`<section id="${operationId}">
    <h3><span class="method">${method.toUpperCase()}</span> <code>${path}</code></h3>
    <p>${prose(summary)}.</p>
    <p class="of">${renderSecurity(operation)} · ${operationId}</p>
    ${
      parameters.length > 0
        ? html`<h4>Parameters</h4>
            <table>
              ${parameters.map(renderParameter)}
            </table>`
        : undefined
    }
    ${
      requestBody &&
      html`<h4>Body</h4>
        ${renderContent(requestBody.content)}`
    }
    <h4>Replies</h4>
    ${renderReplies(replies)}
    ${
      failures.length > 0
        ? html`<details>
            <summary>Failures: ${failures.map(([status]) => status).join(', ')}</summary>
            ${renderReplies(failures)}
          </details>`
        : undefined
    }
  </section> `
}

type Reply = [status: string, reply: OperationObject['responses'][string]]

function partition(replies: readonly Reply[]): [Reply[], Reply[]] {
  const isFailure = ([status]: Reply) => Number(status) >= 400
  return [replies.filter((reply) => !isFailure(reply)), replies.filter(isFailure)]
}

function renderParameter(one: OperationObject['parameters'][number]): Html {
  return html`<tr>
    <td>
      <code>${one.name}</code>${one.required ? html`<b title="required">*</b>` : undefined}
      <span class="of">${one.in}</span>
    </td>
    <td>${renderSchema(one.schema)}</td>
    <td>${one.description === undefined ? undefined : prose(one.description)}</td>
  </tr> `
}

function renderReplies(replies: readonly Reply[]): Html {
  const rows = replies.map(
    ([status, { description, content, headers: shown = {} }]) =>
      html`<tr>
        <td><b>${status}</b></td>
        <td>
          ${prose(description)}${Object.keys(shown).map((name) => html` <code>${name}</code>`)}
        </td>
        <td>${content && renderContent(content)}</td>
      </tr> `,
  )
  return html`<table class="replies">
    ${rows}
  </table>`
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
  if (security.length === 0) return 'Needs no key'
  const ways = security.map((way) => Object.keys(way).map((name) => schemeNames[name] ?? name))
  // Omit combinations that extend a sufficient one with an optional header; the top of the page explains those once.
  const enough = ways.filter(
    (way) => !ways.some((other) => other.length < way.length && isPart(other, way)),
  )
  return `Needs ${enough.map((names) => names.join(' with ')).join(', or ')}`
}

function isPart(few: readonly string[], many: readonly string[]): boolean {
  return few.every((name) => many.includes(name))
}
