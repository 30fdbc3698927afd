import { valueIn } from '../../../controllers/notification/secret-value.ts';
import { readableKey } from '../../forge/github/installation-tokens.ts';
import { isSameName } from '../../forge/same-name.ts';
import { isSluiceError, messageOf } from '../../foundation/sluice-error.ts';
import type { HostRules } from '../../git/network/host-rules.ts';
import type { SourcedPolicy } from '../../package/store/policies/effective-policy.ts';
import { findSecret } from '../../package/upstream/find-secret.ts';
import type { Client } from '../../resource/client/client.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { expectPermittedApi, providerProblem } from './forge-repository.ts';
import { credentialsIn } from './github-credentials.ts';

type Policy = Pick<SourcedPolicy, 'metadata' | 'spec'>;

/** What is wrong with the address of the API in `spec.review`, as far as the policy alone shows; a sentence each. */
export function apiProblems({ metadata: { name }, spec: { review } }: Policy): string[] {
  if (review === undefined) return [];
  const { provider, api } = review.forge;
  const other = providerProblem(provider, api, `spec.review.forge.secretRef of policy ${name}`);
  if (other !== undefined) return [other];
  if (provider === 'github' || /\/api\/v1\/*$/.test(URL.parse(api)?.pathname ?? '')) return [];
  return [
    `spec.review.forge.api of policy ${name} does not end with /api/v1, as the address of the API of Gitea and Forgejo does`,
  ];
}

/** Users of the host that a policy maps to several users, of whom only the first one counts. */
export function approverProblems({ metadata: { name }, spec: { review } }: Policy): string[] {
  const users = (review?.approvers ?? []).map(({ user }) => user);
  const twice = users.filter((user, at) => users.findIndex((one) => isSameName(one, user)) < at);
  return [...new Set(twice)].map(
    (user) =>
      `spec.review.approvers of policy ${name} lists ${user} more than once, of which only the first entry counts; remove the others`,
  );
}

/** That the Secret of `spec.review` is missing, or has none of the keys for credentials. */
export interface MissingSecret {
  readonly missing: string;
  /** There is a Secret, which may have other keys. */
  readonly isThere: boolean;
}

/** That what a Secret has cannot be a token, or the id and the key of an App. `isOfApp`: no token mends it. */
export interface InvalidSecret {
  readonly invalid: string;
  readonly isOfApp: boolean;
}

/** What is wrong with the Secret of `spec.review`, as far as its form shows it; undefined if the host has to decide. */
export async function secretProblem(
  client: Client,
  { metadata: { name: policy, namespace = DEFAULT_NAMESPACE }, spec: { review } }: Policy,
  signal: AbortSignal,
): Promise<MissingSecret | InvalidSecret | undefined> {
  if (review === undefined) return undefined;
  const { provider, secretRef } = review.forge;
  const { name, key } = secretRef;
  const secret = await findSecret(client, { namespace, name }, signal);
  const data = secret?.data ?? {};
  if (!Object.hasOwn(data, key) && !Object.hasOwn(data, 'githubAppID')) {
    const what = secret === undefined ? 'does not exist' : `has neither ${key} nor githubAppID`;
    return {
      isThere: secret !== undefined,
      missing: `Secret ${name} of spec.review.forge.secretRef ${what}, so that no proposal gets a pull request: create it with a token of the Git host, which Sluice reads within a minute`,
    };
  }
  const where = `Secret ${namespace}/${name}, which spec.review.forge.secretRef of policy ${policy} refers to,`;
  let isOfApp = false;
  try {
    if (provider !== 'github') valueIn(secret, key, where);
    else {
      isOfApp = Object.hasOwn(data, 'githubAppID');
      const credentials = credentialsIn(secret, key, where);
      if ('app' in credentials) readableKey(credentials.app.privateKey, where.slice(0, -1));
    }
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput') && !isSluiceError(error, 'NotFound')) throw error;
    return { invalid: error.message, isOfApp };
  }
  return undefined;
}

/** All of it, with a Secret that Sluice may not read, and whether the server may connect to the API. */
export async function reviewProblems(
  client: Client,
  hosts: HostRules,
  policy: Policy,
  signal: AbortSignal,
): Promise<string[]> {
  const { review } = policy.spec;
  if (review === undefined) return [];
  const secret = await secretProblem(client, policy, signal).catch((error: unknown) => {
    // Without it no pull request can be opened or read.
    if (isSluiceError(error, 'Refused')) return { missing: error.message, isThere: true };
    throw error;
  });
  return [
    ...apiProblems(policy),
    ...permissionProblems(review.forge.api, `spec.review.forge.api of policy ${policy.metadata.name}`, hosts),
    ...(secret === undefined ? [] : ['missing' in secret ? secret.missing : secret.invalid]),
    ...approverProblems(policy),
  ];
}

function permissionProblems(api: string, field: string, hosts: HostRules): string[] {
  try {
    expectPermittedApi(api, field, hosts);
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
}
