import type { Authorizer } from './authorization/authorizer.ts';
import { requireAllowed } from './authorization/require-allowed.ts';
import type { Exchange } from './exchange/exchange.ts';
import { dryRunOf } from './handlers/query-options.ts';
import type { ResourceCall } from './handlers/resource-call.ts';
import type { DecodedText } from './http/json-text.ts';
import { negotiate } from './http/media-type.ts';
import type { RequestBody } from './http/request-body.ts';

/** Why something is asked for, percent-encoded. */
const REASON_HEADER = 'sluice-reason';
/** Characters of a reason; the rest is cut off. */
const LONGEST_REASON = 1024;
const GET_SECRET = {
  verb: 'get',
  isResource: true,
  path: '',
  group: '',
  version: 'v1',
  resource: 'secrets',
  subResource: '',
} as const;
const REVISION = {
  isResource: true,
  path: '',
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  resource: 'packagerevisions',
} as const;
const MAX_WARNINGS = 20;
const MAX_WARNING_LENGTH = 512;

/** What the handlers see of a request whose user and resource are known. */
export function resourceCall(
  exchange: Exchange,
  {
    authorizer,
    decode,
    body,
  }: {
    readonly authorizer: Authorizer;
    readonly decode: (body: RequestBody) => DecodedText;
    readonly body: RequestBody;
  },
): ResourceCall {
  const { info, query, resource, user, request, aborted } = exchange;
  if (info === undefined || resource === undefined || user === undefined)
    throw new Error('a request without user or resource has no handler');
  const { name, groups } = user;
  exchange.dryRun = dryRunOf(query);
  const warn = (text: string) => {
    if (exchange.warnings.length < MAX_WARNINGS) exchange.warnings.push(warningHeader(text));
  };
  // Of package revisions, also where their files are what is written.
  const mayUpdate = (subResource: string) =>
    ['update', 'patch'].some(
      (verb) =>
        authorizer.authorize({ ...REVISION, verb, subResource, user, namespace: info.namespace, name: info.name })
          .allowed,
    );
  const { deprecation } = resource.kind;
  if (deprecation !== undefined) warn(deprecation);
  return {
    ...{ info, query, resource, user, decode },
    userAgent: request.headers['user-agent'] ?? '',
    context: {
      ...{ actor: { name, groups }, face: 'api', dryRun: exchange.dryRun, signal: aborted.signal, warn },
      ...reasonOf(request.headers[REASON_HEADER]),
      mayWriteStatus: () => mayUpdate('status'),
      mayApprove: () => mayUpdate('approval'),
      mayReadOther: (other) => authorizer.authorize({ ...info, user, name: other }).allowed,
      mayReadSecret: (secret) => authorizer.authorize({ ...GET_SECRET, ...secret, user }).allowed,
    },
    representation: negotiate(request.headers.accept),
    requireVerb: (verb) => requireAllowed(authorizer, { ...info, verb, user }),
    body,
    warn,
    note: ({ name: found, dryRun }) => {
      if (found !== undefined) exchange.name = found;
      if (dryRun !== undefined) exchange.dryRun = dryRun;
    },
  };
}

function reasonOf(header: string | string[] | undefined): { readonly reason?: string } {
  if (typeof header !== 'string' || header === '') return {};
  try {
    return { reason: decodeURIComponent(header).slice(0, LONGEST_REASON).toWellFormed() };
  } catch {
    // Whoever does not encode may have a percent sign in it; what they meant is still better than nothing.
    return { reason: header.slice(0, LONGEST_REASON) };
  }
}

/** A `Warning` header as Kubernetes writes it: `299 - "text"`. Characters that a header cannot carry become question marks. */
function warningHeader(text: string): string {
  const safe = text.slice(0, MAX_WARNING_LENGTH).replace(/[^\x20-\x7e]/g, '?');
  return `299 - "${safe.replace(/["\\]/g, '\\$&')}"`;
}
