import type { EntryGroup } from './entry.ts'

export const dashboardErrors: EntryGroup = {
  area: 'dashboard',
  title: 'Dashboard',
  intro: `Answers of the dashboard to its own pages, as \`{"code": 409, "message": "…"}\`. The dashboard passes the errors of the platform
API and of envd on.`,
  entries: {
    answer_too_large: [
      'The answer of the sandbox or of the server is too large to show.',
      'Download the file, or list a smaller directory.',
    ],
    body_not_json: ['The page sent a body that is not JSON.', 'Reload the page.'],
    body_too_large: ['The page sent too much at once.', 'Send less, or upload a file.'],
    bulk: ['The request names no known action or has a bad filter.', 'Reload the page.'],
    bulk_limit: [
      'The session already runs five actions on many sandboxes, or the server a hundred.',
      'Wait until one has finished.',
    ],
    bulk_unknown: [
      'The action on many sandboxes was forgotten: it is old, of another session, or the server was restarted.',
      'Look at the list for what was done, and start the action again.',
    ],
    cross_origin: [
      'The request comes from another site.',
      'Open the dashboard by its own address; a reverse proxy must keep the headers `Host` and `Origin`.',
    ],
    envd_answer: [
      'The sandbox sent an answer that is not JSON.',
      'Retry, or create a new sandbox.',
    ],
    live_connections: [
      'The dashboard has as many open pages as it may have, in all or of one session.',
      'Close pages of the dashboard in other windows.',
    ],
    internal: [
      'The dashboard met an unexpected error.',
      'Report the time to the operator; the server log has the cause.',
    ],
    no_method: ['envd has no such method for the dashboard.', 'Reload the page.'],
    no_operation: ['The platform API has no such operation for a team.', 'Reload the page.'],
    no_path: ['The dashboard has no such path.', 'Reload the page.'],
    no_recording: [
      'The recording does not exist, or belongs to another team.',
      'Reload the list of recordings.',
    ],
    no_session: ['The session ended, or its API key was deleted.', 'Sign in again.'],
    path_missing: ['The request names no file.', 'Reload the page.'],
    recordings_full: [
      'The team has as many recordings of terminals as it may have.',
      'Delete recordings.',
    ],
    no_share: [
      'The share link was revoked, has expired, or its API key was deleted.',
      'Ask for a new link.',
    ],
    read_only: ['A share link cannot change a sandbox.', 'Sign in with an API key.'],
    sandbox_paused: ['The sandbox is paused.', 'Resume the sandbox first.'],
    share_failed: [
      'The sandbox of a share link cannot be read, for example because its team is blocked or exceeds a rate limit.',
      'Try again later, or ask the person who made the link.',
    ],
    share_links: [
      'There are too many links to the sandbox, or of the team.',
      'Revoke a link first.',
    ],
    share_seconds: [
      'A share link is valid for one minute to seven days.',
      'Choose a time within these limits.',
    ],
    sign_in: ['The sign-in has neither an API key nor a link.', 'Enter an API key.'],
    sign_in_refused: [
      "The API key or the operator's token is unknown, or the link was used before or has expired.",
      'Enter a key that exists, or use a new link.',
    ],
    target: ['The target of the request is not a path.', 'Open the dashboard by its own address.'],
    terminal_broken: ['The sandbox closed the terminal.', 'The page connects again by itself.'],
    terminal_input: [
      'The page sent more input than the terminal takes.',
      'Reload the page, and paste less at once.',
    ],
    upstream_failed: [
      'The server or the sandbox did not answer the dashboard, or the answer broke off.',
      'Retry after a moment.',
    ],
  },
}
