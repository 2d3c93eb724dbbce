import type { EntryGroup } from './entry.ts'

export const apiTemplateErrors: EntryGroup = {
  area: 'api',
  title: 'Platform API: templates and builds',
  entries: {
    build_files_failed: [
      'The node failed to store the uploaded files.',
      'Upload the files again, and report the time to the operator if it fails again.',
    ],
    build_files_refused: [
      'The node rejected the upload, because the hash or the owner is malformed.',
      'Use the upload URL of the API unchanged, with a hash of 64 hexadecimal digits.',
    ],
    build_forbidden: [
      'The build belongs to another team.',
      'Use credentials of the team that requested the build.',
    ],
    build_not_found: [
      'The template has no such build; starting a build answers 404, and reading one answers 400.',
      'Use the `buildID` that the request for the build returned.',
    ],
    build_not_waiting: ['The build was started before.', 'Request a new build.'],
    concurrent_builds_exceeded: [
      'The team already has as many builds under way as its limit allows.',
      'Wait until a build ends, or ask an operator to raise the limit.',
    ],
    foreign_namespace: [
      'The name of the template has the namespace of another team.',
      'Leave the namespace out, or use the own one from the message.',
    ],
    install_failed: [
      'A template of the catalogue could not be installed; the server log has the cause.',
      'Ask the operator to fix the cause, such as an unreachable Debian mirror, and retry.',
    ],
    install_not_awaited: [
      'The client disconnected while a template was being installed; the install continues.',
      'Create the sandbox again later.',
    ],
    invalid_dockerfile: [
      'The Dockerfile has an instruction or a form that Atoll does not support; the message names the line.',
      'Change that line.',
    ],
    invalid_origin: [
      'The build names no source, or two.',
      'Send exactly one of `fromTemplate` and `fromImage`.',
    ],
    invalid_tag: [
      'A tag is malformed, looks like a build ID, or is `default` and cannot be removed.',
      'Use another tag.',
    ],
    invalid_template_reference: [
      'The template reference is malformed, or has a tag where none is allowed.',
      'Send an ID, or a name such as `base` or `base:default`.',
    ],
    name_missing: ['The request for a build has no name.', 'Send `name` in the JSON body.'],
    name_taken: [
      'The name belongs to another template or snapshot, or is the ID of a template.',
      'Choose another name.',
    ],
    not_in_catalogue: [
      'The catalogue has no template of this name.',
      'Choose a name from `GET /catalogue`.',
    ],
    parent_is_snapshot: [
      '`fromTemplate` names a snapshot, which templates cannot be built from.',
      'Build from the template of that sandbox.',
    ],
    permit_invalid: [
      'The upload URL was changed, or is older than 30 minutes.',
      'Get a new URL from `GET /templates/{templateID}/files/{hash}` and use it unchanged.',
    ],
    registry_login_not_supported: [
      'The login for the registry is of a type that Atoll does not support.',
      'Send type `registry` with user name and password.',
    ],
    team_limit_exceeded: [
      'The template asks for more CPUs, memory or disk than the team may use.',
      'Ask for less, or ask an operator to raise the limits.',
    ],
    template_elsewhere: [
      'The parent template is on another node than the builds of the team; layers do not move between nodes.',
      'Build the parent again from its source, or use another parent.',
    ],
    template_forbidden: [
      'The template belongs to another team or to the installation.',
      'Use a template of your team, or credentials of the owner.',
    ],
    template_in_use: [
      'Running or paused sandboxes use the template.',
      'Kill these sandboxes, then delete the template.',
    ],
    template_installing: [
      'The template is in the catalogue, and its install takes longer than clients wait; the install continues.',
      'Create the sandbox again in some minutes, or wait with `atoll template install`.',
    ],
    template_not_found: [
      'There is no such template, tag or build that the team may use.',
      'Check the name with `GET /templates`; `base` always exists.',
    ],
    template_not_installed: [
      'The template is in the catalogue but not installed, and only operators may install here.',
      'Ask an operator to run `atoll template install`.',
    ],
  },
}
