import { resolve } from 'node:path';
import { conflictingRepository } from '../../../controllers/repository/repository-conflict.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { counted } from '../../foundation/text/counted.ts';
import { refusedCredentials } from '../../git/network/refused-credentials.ts';
import { looksLikeSsh } from '../../git/network/ssh-address.ts';
import { isCopyMessage } from '../../package/store/opening/open-repository-trust.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { parseDuration } from '../../resource/object/duration.ts';
import { keyOf, keyText } from '../../resource/object/object.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import type { Access } from '../access/access.ts';
import { revisionsOf } from '../access/find-revision.ts';
import { inAccess } from '../access/in-access.ts';
import { expectReady } from '../access/repository-status.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { putSecret } from './put-secret.ts';
import { repositoriesOf } from './repo-get.ts';
import {
  AUTH_SECRET_SUFFIX,
  credentialsGiven,
  gatesAnnotation,
  labelsOf,
  type RepositoryOptions,
} from './repository-options.ts';
import { readWebhookSecret, WEBHOOK_SECRET_SUFFIX, webhookAddressText, writeWebhookSecret } from './webhook-secret.ts';

export interface RegOptions extends RepositoryOptions, PlaceOptions, ActorOptions {
  readonly name?: string;
  readonly branch: string;
  readonly createBranch?: boolean;
  readonly directory: string;
  /** A duration; false for `--no-wait`. */
  readonly wait?: string | false;
}

/**
 * `sluice repo reg`: writes the object and waits until the repository can be used. If that fails, the object is removed.
 */
export function repoReg(address: string, options: RegOptions, invocation: Invocation): Promise<CommandResult> {
  const name = options.name ?? nameFrom(address);
  const timeoutMs = timeoutOf(options.wait);
  const register = async (access: Access) => {
    const { client, namespace } = access;
    const { terminal } = invocation;
    const webhookSecret = await readWebhookSecret(options.webhookSecretFile);
    const secret = await credentialsGiven(options);
    const repository = repositoryKind.complete(
      newRepository(name, address, options, {
        namespace,
        secret: secret === undefined ? undefined : `${name}${AUTH_SECRET_SUFFIX}`,
        webhook: webhookSecret === undefined ? undefined : `${name}${WEBHOOK_SECRET_SUFFIX}`,
      }),
    );
    await expectUnused(access, repository);
    const undo: (() => Promise<void>)[] = [];
    let isCreated = false;
    try {
      // Before the object: it is opened at once.
      if (secret !== undefined) undo.push(await putSecret(access, { name: `${name}${AUTH_SECRET_SUFFIX}`, ...secret }));
      if (webhookSecret !== undefined) undo.push(await writeWebhookSecret(access, name, webhookSecret));
      const made = await client.create(repositoryKind, repository);
      isCreated = true;
      undo.push(() => client.delete(repositoryKind, { namespace, name }).then(() => undefined));
      if (timeoutMs !== 0) await expectReady(access, made, timeoutMs);
    } catch (error) {
      const hint = credentialsHint(messageOf(error), options);
      throw await failed(name, error, undo, { hasTimeout: timeoutMs !== undefined, isCreated, hint });
    }
    terminal.line(`${name} created`);
    if (webhookSecret !== undefined) terminal.note(`webhooks go to ${webhookAddressText(access, name)}`);
    if (timeoutMs === 0) return 0;
    const { length: count } = await revisionsOf(access, name);
    terminal.note(`${counted(count, 'package revision')} found`);
    return 0;
  };
  return inAccess(options, invocation, register, true);
}

/** Undefined for the usual time, 0 for not waiting. */
function timeoutOf(wait: string | false | undefined): number | undefined {
  if (wait === undefined) return undefined;
  const timeoutMs = wait === false ? 0 : parseDuration(wait);
  if (timeoutMs !== undefined) return timeoutMs;
  throw new SluiceError('InvalidInput', `--wait must be a duration such as 30s or 5m, not ${JSON.stringify(wait)}`);
}

/**
 * Returns the error of a failed registration, after removing the objects that it created. They stay if an operator must decide, or
 * if the repository is still being read and the caller set no timeout.
 */
async function failed(
  name: string,
  error: unknown,
  undo: readonly (() => Promise<void>)[],
  { hasTimeout, isCreated, hint }: { readonly hasTimeout: boolean; readonly isCreated: boolean; readonly hint: string },
): Promise<SluiceError> {
  const cause = messageOf(error);
  const code = isSluiceError(error) && error.code !== 'Internal' ? error.code : 'Unavailable';
  if (isCopyMessage(cause) || (code === 'Timeout' && !hasTimeout))
    return new SluiceError(
      code,
      `${name} is registered, but cannot be used yet: ${cause}; "sluice repo unreg ${name}" forgets it`,
      { cause: error },
    );
  const left: string[] = [];
  for (const step of undo.toReversed())
    await step().catch((problem: unknown) => {
      // Another client has removed it.
      if (!isSluiceError(problem, 'NotFound')) left.push(messageOf(problem));
    });
  // The server refused the object itself, so that no other option helps.
  if (!isCreated && left.length === 0)
    return new SluiceError(code, `${name} cannot be registered: ${cause}`, { cause: error });
  const rest =
    left.length === 0
      ? 'nothing was registered; fix that and try again, or register it as it is with --no-wait'
      : `and the registration could not be removed (${left.join('; ')}): "sluice repo unreg ${name}"`;
  return new SluiceError(code, `${name} cannot be used: ${cause}${hint}; ${rest}`, { cause: error });
}

/** Which options gave, or can give, the credentials that the host does not accept. */
function credentialsHint(cause: string, options: RegOptions): string {
  const problem = refusedCredentials(cause);
  const given = [
    ...(options.repoBasicUsername === undefined ? [] : ['--repo-basic-username']),
    ...(options.repoBasicPasswordFile === undefined ? [] : ['--repo-basic-password-file']),
    ...(options.repoBasicPassword === undefined ? [] : ['--repo-basic-password']),
  ];
  if (problem === 'rejected' && given.length > 0)
    return `; that Secret had the values of ${given.join(' and ')}: check the user name, and that the password or token is valid for this host`;
  return problem === undefined ? '' : '; give --repo-basic-username and --repo-basic-password-file';
}

/** Checked before anything is written: the Secrets of an existing repository with this name must stay unchanged. */
async function expectUnused(access: Access, repository: Repository): Promise<void> {
  const others = await repositoriesOf(access, access.namespace);
  const other = await conflictingRepository(repository, others, () => true);
  if (other === undefined) return;
  if (other.metadata.name === repository.metadata.name)
    throw new SluiceError(
      'AlreadyExists',
      `Repository ${keyText(keyOf(other))} already exists; choose another name with --name, or forget it with "sluice repo unreg ${other.metadata.name}"`,
    );
  throw new SluiceError(
    'AlreadyExists',
    `Repository conflict with existing repository: ${keyText(keyOf(other))} holds the same packages; use another branch or folder`,
  );
}

function newRepository(
  name: string,
  address: string,
  options: RegOptions,
  { namespace, secret, webhook }: { readonly namespace: string } & Record<'secret' | 'webhook', string | undefined>,
) {
  const labels = labelsOf(options.label ?? []) as Record<string, string>;
  const annotations = {
    ...gatesAnnotation(options.gates),
    ...(webhook === undefined ? {} : { [WEBHOOK_SECRET_ANNOTATION]: webhook }),
  };
  return {
    metadata: {
      ...{ name, namespace },
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: {
      type: 'git' as const,
      ...(options.description === undefined ? {} : { description: options.description }),
      ...(options.deployment === true ? { deployment: true } : {}),
      ...(options.syncSchedule === undefined ? {} : { sync: { schedule: options.syncSchedule } }),
      git: {
        repo: isUrl(address) || looksLikeSsh(address) ? address : resolve(address),
        branch: options.branch,
        directory: options.directory,
        ...(options.createBranch === true ? { createBranch: true } : {}),
        ...(secret === undefined ? {} : { secretRef: { name: secret } }),
      },
    },
  };
}

function isUrl(address: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(address);
}

function nameFrom(address: string): string {
  const isPath = !isUrl(address) && !looksLikeSsh(address);
  const last =
    (isPath ? resolve(address) : address)
      .replace(/\/+$/, '')
      .split(looksLikeSsh(address) ? /[/:]/ : '/')
      .at(-1) ?? '';
  const name = last.replace(/\.git$/, '').toLowerCase();
  if (/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return name;
  throw new SluiceError(
    'InvalidInput',
    `"${printable(last)}" cannot be the name of a repository; choose one with --name (lower case letters, digits and "-")`,
  );
}
