/** Generates `docs/api.md`, the reference of the platform API, from the contracts. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Operation } from '@atoll/contracts/operation'
import { operations } from '@atoll/contracts/operations'

const page = join(import.meta.dirname, '../docs/api.md')

const head = `# API reference

The operations of the platform API, made from the contracts (\`npm run generate\`). The server shows the same in full at
\`/docs\`, and as OpenAPI 3.1 at \`/openapi.json\`. Who may call:

| who | by |
| --- | --- |
| team | \`X-API-Key\`, or \`Authorization: Bearer\` with an access token (and \`X-Team-ID\` for another team of the user), or \`X-Admin-Token\` with \`X-Team-ID\` |
| user | \`Authorization: Bearer\` with an access token |
| admin | \`X-Admin-Token\`: internal, for operators; off unless \`ATOLL_ADMIN_TOKEN\` is set |
| all callers | no key |

Besides the failures below every operation answers 405 to other methods, 413 to a body above 16 MiB and 415 to a body
that is not JSON. [Errors](errors.md) lists the reasons behind the statuses, and what to do.

| operation | method and path | who | success | failures |
| --- | --- | --- | --- | --- |
`

const dockerfiles = `
## From a Dockerfile to a sandbox

\`POST /templates\` builds a template from a Dockerfile. \`$ATOLL_ACCESS_TOKEN\` is \`accessToken\` in
\`credentials.json\` of the data directory, or a \`token\` of \`POST /access-tokens\`; \`X-API-Key\` works too. \`jq\` puts the file into JSON:

\`\`\`sh
cat > Dockerfile <<'END'
FROM base
ENV GREETING=hello
WORKDIR /srv/site
RUN echo $GREETING > index.html
CMD python3 -m http.server 8000
END
jq -n --rawfile dockerfile Dockerfile \\
  '{$dockerfile, alias: "site", readyCmd: "curl -sf localhost:8000", cpuCount: 1, memoryMB: 512}' |
  curl -sS $E2B_API_URL/templates -H "Authorization: Bearer $ATOLL_ACCESS_TOKEN" -H 'Content-Type: application/json' \\
    -d @- | tee build.json
\`\`\`

The answer, 202, is the template with the \`buildID\` of the new build. Follow the build until \`status\` is \`ready\` or \`error\`, and
create a sandbox by the alias:

\`\`\`sh
curl -sS "$E2B_API_URL/templates/$(jq -r .templateID build.json)/builds/$(jq -r .buildID build.json)/status" \\
  -H "X-API-Key: $E2B_API_KEY" | jq '{status, reason, log: [.logEntries[].message]}'
curl -sS $E2B_API_URL/v2/sandboxes -H "X-API-Key: $E2B_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"templateID": "site"}'
\`\`\`

| FROM | means |
| --- | --- |
| \`base\`, \`e2bdev/base\` | the template \`base\`; a team's own template \`base\` comes before it |
| \`code-interpreter\`, \`e2bdev/code-interpreter\` | that template of the catalogue, which is installed if it is missing |
| \`name\`, \`namespace/name\`, an ID, each with \`:tag\` or without | a template of the team, or a public one |
| anything else, such as \`python:3.12\` or \`docker.io/library/node\` | an image of a registry of \`ATOLL_REGISTRIES\` |

A name alone never means the template that is being built. Templates of other teams that are not public are treated as absent. The build
log begins with what FROM was taken for.

- From \`base\`, the catalogue and images, the steps run as \`root\` in \`/\`, and sandboxes get \`user\` in \`/home/user\` unless the
  Dockerfile has USER and WORKDIR. From a template of a team, the steps keep its user, directory and variables.
- ARG, ENV, RUN, USER, WORKDIR, ENTRYPOINT and CMD work, with variables, quotes and the \`escape\` directive. ARG before FROM may be used
  in FROM. \`startCmd\` replaces ENTRYPOINT and CMD. Without \`readyCmd\`, a CMD has 20 seconds to get ready.
- EXPOSE, VOLUME, LABEL, STOPSIGNAL and HEALTHCHECK have no effect.
- More than one stage, COPY, ADD, SHELL, ONBUILD, options of RUN and here-documents are refused with the number of the line. To copy
  files, use the template builder of the SDK.
`

function render(): string {
  return `${head}${operations.map(renderRow).join('\n')}\n${dockerfiles}`
}

function renderRow({ id, method, path, auth, replies, errors }: Operation): string {
  const who = auth === 'none' ? 'all callers' : auth
  const success = Object.keys(replies).join(' ')
  return `| \`${id}\` | \`${method} ${path}\` | ${who} | ${success} | ${errors.join(' ')} |`
}

export async function compareOperationsPage(): Promise<string | undefined> {
  const committed = await readFile(page, 'utf8').catch(() => '')
  return committed === render() ? undefined : 'docs/api.md is stale; run: npm run generate'
}

if (import.meta.main) await writeFile(page, render())
