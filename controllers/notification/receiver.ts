/** One request to a receiver. */
export interface PostRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** PEM of authorities that are trusted in addition. */
  readonly authorities?: string | undefined;
  readonly signal: AbortSignal;
}

export interface PostResponse {
  readonly status: number;
  /** Milliseconds of the header Retry-After. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Posts JSON under the rules for Git hosts, and without following redirects. Rejects with a SluiceError if no response arrives in time;
 * neither the error nor the response contain the path of the URL, headers or what the receiver wrote.
 */
export type Post = (request: PostRequest) => Promise<PostResponse>;

/** The outcome of one attempt. */
export type Attempt =
  | { readonly outcome: 'sent' }
  /** No message is due, since the event is about no commit on the Git host. */
  | { readonly outcome: 'skipped' }
  | { readonly outcome: 'failed'; readonly message: string; readonly retryAfterMs?: number | undefined }
  /** Another attempt with the same message would fail too. */
  | { readonly outcome: 'rejected'; readonly message: string };

/** What a response means. A message that the receiver finds invalid stays invalid; all else can change. */
export function attemptOf({ status, retryAfterMs }: PostResponse, receiver: string, credentials: string): Attempt {
  if (status >= 200 && status < 300) return { outcome: 'sent' };
  const failure = `cannot send to ${receiver}: it returned ${status}`;
  if (status >= 300 && status < 400)
    return { outcome: 'failed', message: `${failure}, a redirect, which is not followed; use the final address` };
  if (status === 400 || status === 413 || status === 422)
    return { outcome: 'rejected', message: `${failure}, so it does not accept this message; check the format` };
  if (status === 401 || status === 403 || status === 404 || status === 410)
    return { outcome: 'failed', message: `${failure}; check the address and ${credentials}` };
  return { outcome: 'failed', message: `${failure}; it is tried again`, retryAfterMs };
}
