import { commandLine } from '../../foundation/text/command-line.ts';
import { isAboutRefusedPush } from '../../git/refs/push-conflict.ts';
import { explainSchema } from '../../package/model/revision/revision-readings.ts';
import type { SourcedPolicy } from '../../package/store/policies/effective-policy.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Access } from '../access/access.ts';
import { unlessUnreadable } from './unless-unreadable.ts';

/** Proposals that are asked for what the Git host has against them: a host that gives no access gives it to none. */
const MAX_ASKED = 5;

/** What keeps the pull requests of proposals from being opened or read, once each, and the proposals that report it. */
export interface HostFailures {
  readonly messages: readonly string[];
  readonly revisions: readonly string[];
}

/** Reads that of these proposed revisions, as `sluice why` reports it for each. */
export async function hostFailures(
  { client, namespace, isSluice }: Pick<Access, 'client' | 'namespace' | 'isSluice'>,
  proposed: readonly string[],
): Promise<HostFailures> {
  const messages = new Set<string>();
  const revisions: string[] = [];
  for (const name of isSluice ? proposed.slice(0, MAX_ASKED) : []) {
    const key = { namespace, name };
    const read = await unlessUnreadable(client.subResource('explain').get(packageRevisionKind, key, {}));
    if (read === undefined) continue;
    const { reasons } = explainSchema.parse(read).explanation;
    const failed = reasons.filter(({ reason }) => reason === 'PullRequestFailed');
    for (const { message } of failed) messages.add(message);
    if (failed.length > 0) revisions.push(name);
  }
  return { messages: [...messages], revisions };
}

/** What follows the state of a policy. `isWrong`: what it says of the host is wrong, so that there is no access to it. */
export function failureText({ messages }: Pick<HostFailures, 'messages'>, isWrong: boolean): string {
  if (isWrong || !messages.every(isAboutRefusedPush)) return ', but pull requests cannot be opened or read';
  return messages.length === 0 ? '' : ', but the Git host refuses pushes that pull requests need';
}

interface SecretReference {
  readonly name: string;
  readonly key: string;
}

/** The command that creates the Secret of a policy. */
export function secretCommand(
  namespace: string,
  { name, key }: SecretReference,
  /** The Secret is for Git too, which needs a user. */
  withUser = false,
): string {
  const create = ['kubectl', 'create', 'secret', 'generic', name, '--namespace', namespace];
  const user = withUser ? ['--from-literal=username=USER'] : [];
  return commandLine([...create, ...user, `--from-file=${key}=TOKEN_FILE`]);
}

/** The command that gives the Secret of a policy another token, and leaves its other keys. */
export function tokenCommand(namespace: string, { name, key }: SecretReference): string {
  return patchCommand(namespace, name, { [key]: 'base64 < TOKEN_FILE' });
}

/** The same for the App that a Secret has. `withInstallation`: it has the id of an installation too. */
export function appCommand(namespace: string, { name }: SecretReference, withInstallation = false): string {
  return patchCommand(namespace, name, {
    githubAppID: 'printf APP_ID | base64',
    ...(withInstallation ? { githubAppInstallationID: 'printf INSTALLATION_ID | base64' } : {}),
    githubAppPrivateKey: 'base64 < KEY_FILE',
  });
}

/** Of a Secret that "kubectl apply" writes, the keys would be removed that the command does not name. */
function patchCommand(namespace: string, name: string, values: Readonly<Record<string, string>>): string {
  const keys = Object.entries(values).map(([key, command]) => `\\"${key}\\":\\"$(${command} | tr -d '\\n')\\"`);
  const patch = ['kubectl', 'patch', 'secret', name, '--namespace', namespace, '--type=merge'];
  return `${commandLine(patch)} --patch "{\\"data\\":{${keys.join(',')}}}"`;
}

/** How a user changes a policy, which is an object, or in a file of a repository. */
export function editStep(
  { metadata: { name, namespace = '' }, origin }: Pick<SourcedPolicy, 'metadata' | 'origin'>,
  what: string,
): string {
  if (origin !== undefined) return `${what} in ${origin.file} of Repository ${origin.repository}`;
  return `${what}: ${commandLine(['kubectl', 'edit', 'packagepolicy', name, '--namespace', namespace])}`;
}
