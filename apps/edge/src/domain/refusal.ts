/** Reason for an error response of the edge itself. */
export type Refusal =
  | { readonly kind: 'bad_request'; readonly message: string }
  | { readonly kind: 'unsupported'; readonly message: string }
  | { readonly kind: 'internal_path'; readonly path: string }
  | { readonly kind: 'sandbox_not_found'; readonly sandboxId: string }
  | {
      readonly kind: 'forbidden'
      readonly sandboxId: string
      readonly title: string
      readonly message: string
    }
  | { readonly kind: 'in_transition'; readonly sandboxId: string; readonly message: string }
  | { readonly kind: 'sandbox_limit'; readonly sandboxId: string; readonly message: string }
  | { readonly kind: 'port_closed'; readonly sandboxId: string; readonly port: number }
  | { readonly kind: 'too_many_requests'; readonly sandboxId: string; readonly limit: number }
  /** The limit of open requests to all sandboxes together is reached. */
  | { readonly kind: 'edge_full' }
  | { readonly kind: 'unknown_signature' }
  | { readonly kind: 'too_many_signatures' }
  | { readonly kind: 'node_unreachable' }
  /** Fleet only: the edge does not know the sandbox, and no api answers. */
  | { readonly kind: 'api_unreachable' }
  | { readonly kind: 'internal' }
