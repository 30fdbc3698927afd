import type { IncomingHttpHeaders } from 'node:http';

/** What a sync should look at; see `PackageRepository.sync`. */
export type HintedScope = 'branches' | 'everything';

const EVENT_HEADERS = ['x-github-event', 'x-gitea-event', 'x-forgejo-event', 'x-gogs-event', 'x-gitlab-event'];
/** Events that tell of refs. System hooks of GitLab tell of many things, pushes among them. */
const EVENTS_OF_REFS: ReadonlySet<string> = new Set([
  ...['push', 'create', 'delete'],
  ...['Push Hook', 'Tag Push Hook', 'System Hook'],
]);

/**
 * What a genuine message is worth looking at: undefined for an event that moves no ref. `body` is undefined if it was too long to
 * keep. What it says decides only how much is looked at: whatever is unclear means everything.
 */
export function syncHint(headers: IncomingHttpHeaders, body: Buffer | undefined): HintedScope | undefined {
  const event = EVENT_HEADERS.map((name) => headers[name]).find((value) => value !== undefined);
  if (event !== undefined && !EVENTS_OF_REFS.has(String(event))) return undefined;
  const ref = refIn(body);
  // Other than these are tags, which are many and looked at only where they are told of.
  return ref?.startsWith('refs/heads/') || ref?.startsWith('refs/sluice/') ? 'branches' : 'everything';
}

function refIn(body: Buffer | undefined): string | undefined {
  if (body === undefined) return undefined;
  try {
    const payload: unknown = JSON.parse(body.toString('utf8'));
    if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, 'ref')) return undefined;
    const { ref } = payload as { readonly ref: unknown };
    return typeof ref === 'string' ? ref : undefined;
  } catch {
    // A form, or words of a script: it is a hint that something happened, and says no more.
    return undefined;
  }
}
