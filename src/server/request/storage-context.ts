import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { isAllowed } from '../authorization/require-allowed.ts';
import type { ApiRequest } from './api-request.ts';

/** The reason of the caller for the request, percent-encoded. */
const REASON_HEADER = 'sluice-reason';
/** Maximum length of a reason in characters; longer ones are cut off. */
const MAX_REASON_LENGTH = 1024;
const GET_SECRET = {
  verb: 'get',
  isResource: true,
  path: '',
  group: '',
  version: 'v1',
  resource: 'secrets',
  subResource: '',
} as const;
const GET_TARGET = {
  verb: 'get',
  isResource: true,
  path: '',
  group: 'sluice.dev',
  version: 'v1alpha1',
  resource: 'deliverytargets',
  subResource: '',
} as const;
const PACKAGE_POLICY = {
  isResource: true,
  path: '',
  group: 'sluice.dev',
  version: 'v1alpha1',
  resource: 'packagepolicies',
  subResource: '',
  name: '',
} as const;
const PACKAGE_REVISION = {
  isResource: true,
  path: '',
  group: 'porch.kpt.dev',
  version: 'v1alpha1',
  resource: 'packagerevisions',
} as const;

/** Creates the context of storage calls for a request. Its decisions are made when they are first needed. */
export function storageContext(request: ApiRequest, authorizer: Authorizer): RequestContext {
  const { info, user, aborted, isDryRun } = request;
  const { signal } = aborted;
  const { name, groups } = user;
  const mayChangePolicies = async (namespace: string) => {
    for (const verb of ['update', 'patch'])
      if (await isAllowed(authorizer, { ...PACKAGE_POLICY, verb, namespace, user }, signal)) return true;
    return false;
  };
  // The right is one on the package revision, also where its files are what is written.
  const mayUpdate = async (subResource: string) => {
    const place = { namespace: info.namespace, name: info.name };
    for (const verb of ['update', 'patch'])
      if (await isAllowed(authorizer, { ...PACKAGE_REVISION, verb, subResource, user, ...place }, signal)) return true;
    return false;
  };
  return {
    ...{ actor: { name, groups }, face: 'api', dryRun: isDryRun, signal },
    ...reasonOf(request.header(REASON_HEADER)),
    warn: (text) => request.warn(text),
    mayWriteStatus: once(() => mayUpdate('status')),
    mayApprove: once(() => mayUpdate('approval')),
    mayChangePolicies,
    mayReadOther: (name) => isAllowed(authorizer, { ...info, user, name }, signal),
    mayReadTarget: (target) => isAllowed(authorizer, { ...GET_TARGET, ...target, user }, signal),
    mayReadSecret: (secret) => isAllowed(authorizer, { ...GET_SECRET, ...secret, user }, signal),
  };
}

/** Caches a decision for the whole request, even if its write is retried. */
function once(decide: () => Promise<boolean>): () => Promise<boolean> {
  let decision: Promise<boolean> | undefined;
  return () => {
    decision ??= decide();
    return decision;
  };
}

function reasonOf(header: string): { readonly reason?: string } {
  if (header === '') return {};
  try {
    return { reason: decodeURIComponent(header).slice(0, MAX_REASON_LENGTH).toWellFormed() };
  } catch {
    // A client that does not encode may send a percent sign; its text is still a reason.
    return { reason: header.slice(0, MAX_REASON_LENGTH) };
  }
}
