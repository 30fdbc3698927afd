import { SluiceError } from '../../foundation/sluice-error.ts';
import { resourceName } from '../../resource/storage/memory/object-rules.ts';
import type { User } from '../authentication/user.ts';
import type { Authorizer, RequestAttributes } from './authorizer.ts';

/** Refuses what the authorizer does not allow, in the words of Kubernetes. */
export function requireAllowed(authorizer: Authorizer, attributes: RequestAttributes): void {
  const { allowed, reason } = authorizer.authorize(attributes);
  if (allowed) return;
  const told = `${whatIsRefused(attributes)}${reason === '' ? '' : `: ${reason}`}`;
  throw new SluiceError('Refused', `${subjectOf(attributes)}forbidden: ${told}`, {
    details: { name: attributes.name, group: attributes.group, kind: attributes.resource },
  });
}

/** Attributes of a permission that no URL stands for, such as `impersonate` on a user. */
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

function whatIsRefused(attributes: RequestAttributes): string {
  const { user, verb, isResource, path, group, resource, subResource, namespace } = attributes;
  const who = `User ${JSON.stringify(user.name)} cannot ${verb}`;
  if (!isResource) return `${who} path ${JSON.stringify(path)}`;
  const what = JSON.stringify(subResource === '' ? resource : `${resource}/${subResource}`);
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${JSON.stringify(namespace)}`;
  return `${who} resource ${what} in API group ${JSON.stringify(group)} ${where}`;
}
