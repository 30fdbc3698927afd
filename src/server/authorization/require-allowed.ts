import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { type ErrorCode, isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { User } from '../authentication/user.ts';
import type { AuthorizationDecision, Authorizer, RequestAttributes } from './authorizer.ts';

/** Temporary failures of an authorizer: the caller may retry the request. */
const TEMPORARY: readonly ErrorCode[] = ['Unavailable', 'Timeout', 'TooManyRequests'];

/** Refuses an action that the authorizer does not allow, with the message of Kubernetes. Rejects like `isAllowed`. */
export async function requireAllowed(
  authorizer: Authorizer,
  attributes: RequestAttributes,
  signal?: AbortSignal,
): Promise<void> {
  const { allowed, reason } = await authorizeRequest(authorizer, attributes, signal);
  if (allowed === true) return;
  const why = `${refusedAction(attributes)}${reason === '' ? '' : `: ${reason}`}`;
  throw new SluiceError('Refused', `${subjectOf(attributes)}forbidden: ${why}`, {
    details: { name: attributes.name, group: attributes.group, kind: attributes.resource },
  });
}

/** Returns whether the authorizer allows an action. Throws Unavailable or Internal if it cannot decide. */
export async function isAllowed(
  authorizer: Authorizer,
  attributes: RequestAttributes,
  signal?: AbortSignal,
): Promise<boolean> {
  const { allowed } = await authorizeRequest(authorizer, attributes, signal);
  return allowed === true;
}

/**
 * Returns the decision of an authorizer. Throws Unavailable or Internal if it cannot decide: a failure is never a decision. Timeout as soon as `signal`
 * aborts: an authorizer that does not respond must not keep a request open whose time is up.
 */
export function authorizeRequest(
  authorizer: Authorizer,
  attributes: RequestAttributes,
  signal?: AbortSignal,
): Promise<AuthorizationDecision> {
  return untilEnded(signal, () => decisionOf(authorizer, attributes, signal));
}

async function decisionOf(
  authorizer: Authorizer,
  attributes: RequestAttributes,
  signal: AbortSignal | undefined,
): Promise<AuthorizationDecision> {
  try {
    return await authorizer.authorize(attributes, signal);
  } catch (error) {
    const operation = `cannot authorize the request: whether ${actionOf(attributes)} is not decided`;
    if (TEMPORARY.some((code) => isSluiceError(error, code)))
      throw new SluiceError('Unavailable', `${operation}: ${messageOf(error)}; try again later`, {
        cause: error,
        details: { retryAfterSeconds: 1 },
      });
    // The cause may name internal addresses, so that only the log has it.
    const message = `${operation}: the authorizer failed; the log of the server has the cause`;
    throw new SluiceError('Internal', message, { cause: error });
  }
}

/** Creates the attributes of a permission without a URL, such as `impersonate` on a user. */
export function permission(
  user: User,
  verb: string,
  about: Partial<Pick<RequestAttributes, 'group' | 'resource' | 'subResource' | 'namespace' | 'name'>>,
): RequestAttributes {
  const nothing = { group: '', resource: '', subResource: '', namespace: '', name: '' };
  return { user, verb, isResource: true, path: '', version: 'v1', ...nothing, ...about };
}

function subjectOf({ isResource, group, resource, name }: RequestAttributes): string {
  if (!isResource) return '';
  const what = resourceName({ group, plural: resource });
  return name === '' ? `${what} is ` : `${what} ${JSON.stringify(name)} is `;
}

function refusedAction(attributes: RequestAttributes): string {
  return actionOf(attributes, 'cannot');
}

function actionOf(attributes: RequestAttributes, modal: 'may' | 'cannot' = 'may'): string {
  const { user, verb, isResource, path, group, resource, subResource, namespace } = attributes;
  const who = `User ${JSON.stringify(user.name)} ${modal} ${verb}`;
  if (!isResource) return `${who} path ${JSON.stringify(path)}`;
  const what = JSON.stringify(subResource === '' ? resource : `${resource}/${subResource}`);
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return `${who} resource ${what} in API group ${JSON.stringify(group)} ${where}`;
}
