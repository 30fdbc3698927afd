import { z } from 'zod';
import { SluiceError } from '../foundation/sluice-error.ts';
import type { TokenReviewer } from '../server/authentication/token-review-authenticator.ts';
import type { User } from '../server/authentication/user.ts';
import type { AccessReviewer } from '../server/authorization/access-review-authorizer.ts';
import type { RequestAttributes } from '../server/authorization/authorizer.ts';
import type { HttpClient } from './http-client.ts';

const TOKEN_REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const ACCESS_REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';

/** Programs written in Go omit or send null for what is empty. */
const text = z.string().nullish();
const texts = z.array(z.string()).nullish();

const tokenStatus = z.object({
  authenticated: z.boolean().nullish(),
  user: z
    .object({ username: text, uid: text, groups: texts, extra: z.record(z.string(), z.array(z.string())).nullish() })
    .nullish(),
  audiences: texts,
  error: text,
});

const accessStatus = z.object({ allowed: z.boolean(), denied: z.boolean().nullish(), reason: text });

/**
 * Reviews by a cluster. The user of the client needs the right to create TokenReviews and SubjectAccessReviews, which ClusterRole
 * `system:auth-delegator` grants.
 */
export function clusterReviews(client: HttpClient): TokenReviewer & AccessReviewer {
  return {
    async reviewToken(token, audiences, signal) {
      const spec = { token, ...(audiences.length === 0 ? {} : { audiences }) };
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec };
      const status = await review(client, TOKEN_REVIEWS, body, tokenStatus, signal);
      const user = status.authenticated === true ? userOf(status.user ?? {}) : undefined;
      return { user, audiences: status.audiences ?? [], error: status.error ?? '' };
    },
    async reviewAccess(attributes, signal) {
      const spec = accessSpec(attributes);
      const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const { allowed, denied, reason } = await review(client, ACCESS_REVIEWS, body, accessStatus, signal);
      return { allowed: allowed && denied !== true, reason: reason ?? '' };
    },
  };
}

async function review<Status extends z.ZodType>(
  client: HttpClient,
  path: string,
  body: object,
  schema: Status,
  signal: AbortSignal,
): Promise<z.output<Status>> {
  const response = await client.raw('POST', path, JSON.stringify(body), { signal, accept: 'application/json' });
  const result = z.object({ status: schema }).safeParse(parseJson(response.text));
  if (result.success) return (result.data as { status: z.output<Status> }).status;
  // Without the response, which may contain what it is about.
  throw new SluiceError('Unavailable', `the cluster responded to ${path} with what is no review`);
}

function parseJson(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    // Reported by the caller.
    return undefined;
  }
}

function userOf({ username, uid, groups, extra }: NonNullable<z.output<typeof tokenStatus>['user']>): User | undefined {
  if (!username) return undefined;
  return { name: username, groups: groups ?? [], ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) };
}

function accessSpec({ user, isResource, path, subResource, ...attributes }: RequestAttributes): object {
  const { verb, group, version, resource, namespace, name, selectors } = attributes;
  const { uid, groups, extra } = user;
  const subject = { user: user.name, groups, ...(uid === undefined ? {} : { uid }), ...(extra ? { extra } : {}) };
  if (!isResource) return { ...subject, nonResourceAttributes: { path, verb } };
  const place = { group, version, resource, subresource: subResource, namespace, name };
  return { ...subject, resourceAttributes: { verb, ...place, ...selectors } };
}
