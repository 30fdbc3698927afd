import { resolve } from 'node:path';
import { conflictingRepository } from '../../../controllers/repository/repository-conflict.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { looksLikeSsh } from '../../git/ssh/ssh-address.ts';
import { GATES_ANNOTATION } from '../../package/policy-objects.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/repository.ts';
import { keyOf, keyText } from '../../resource/object.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import type { Access } from '../access/access.ts';
import { printable } from '../output/printable.ts';
import type { ActorOptions, Invocation, Outcome, PlaceOptions } from '../program/invocation.ts';
import { revisionsOf } from './find-revision.ts';
import { inAccess } from './in-access.ts';
import { putSecret, readSecretFile } from './put-secret.ts';
import { repositoriesOf } from './repo-get.ts';
import { readWebhookSecret, WEBHOOK_SECRET_SUFFIX, webhookAddressText, writeWebhookSecret } from './webhook-secret.ts';

export interface RegOptions extends PlaceOptions, ActorOptions {
  readonly name?: string;
  readonly branch: string;
  readonly createBranch?: boolean;
  readonly directory: string;
  readonly description?: string;
  readonly deployment?: boolean;
  readonly label?: readonly string[];
  readonly gates?: string;
  readonly repoBasicUsername?: string;
  readonly repoBasicPassword?: string;
  readonly repoBasicPasswordFile?: string;
  readonly repoSshKeyFile?: string;
  readonly knownHostsFile?: string;
  readonly caFile?: string;
  readonly syncSchedule?: string;
  readonly webhookSecretFile?: string;
}

/** Secrets that a registration makes are named like this. */
export const AUTH_SECRET_SUFFIX = '-auth';

/** `sluice repo reg`: writes the object and waits until the repository can be used, so that a mistake is told at once. */
export function repoReg(address: string, options: RegOptions, invocation: Invocation): Promise<Outcome> {
  const name = options.name ?? nameFrom(address);
  const register = async (access: Access) => {
    const { client, namespace } = access;
    const { terminal } = invocation;
    const webhookSecret = await readWebhookSecret(options.webhookSecretFile);
    const secret = await secretData(options);
    const repository = repositoryKind.complete(
      newRepository(name, address, options, {
        namespace,
        secret: secret === undefined ? undefined : `${name}${AUTH_SECRET_SUFFIX}`,
        webhook: webhookSecret === undefined ? undefined : `${name}${WEBHOOK_SECRET_SUFFIX}`,
      }),
    );
    await expectRoom(access, repository);
    // Before the object: it is opened at once.
    if (secret !== undefined) await putSecret(access, { name: `${name}${AUTH_SECRET_SUFFIX}`, ...secret });
    if (webhookSecret !== undefined) await writeWebhookSecret(access, name, webhookSecret);
    await client.create(repositoryKind, repository);
    terminal.line(`${name} created`);
    if (webhookSecret !== undefined) terminal.note(`webhooks go to ${webhookAddressText(access, name)}`);
    try {
      await access.repositories.ready(name);
    } catch (error) {
      throw new SluiceError(
        'Unavailable',
        `${name} is registered, but cannot be used yet: ${messageOf(error)}; put that right, or forget it with "sluice repo unreg ${name}"`,
        { cause: error },
      );
    }
    const { length: count } = await revisionsOf(access, name);
    terminal.note(`${count} package revision${count === 1 ? '' : 's'} found`);
    return 0;
  };
  return inAccess(options, invocation, register, true);
}

/** Looked at before anything is written: the Secrets of a repository that has the name already must stay as they are. */
async function expectRoom(access: Access, repository: Repository): Promise<void> {
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
  const labels = labelsOf(options.label ?? []);
  const annotations = {
    ...(options.gates === undefined ? {} : { [GATES_ANNOTATION]: gatesMode(options.gates) }),
    ...(webhook === undefined ? {} : { [WEBHOOK_SECRET_ANNOTATION]: webhook }),
  };
  return {
    metadata: {
      ...{ name, namespace },
      ...(labels === undefined ? {} : { labels }),
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
  const last =
    address
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

function gatesMode(mode: string): string {
  if (['enforce', 'warn', 'off'].includes(mode)) return mode;
  throw new SluiceError('InvalidInput', `--gates must be enforce, warn or off, not ${JSON.stringify(mode)}`);
}

function labelsOf(pairs: readonly string[]): Record<string, string> | undefined {
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=');
      if (equals < 1) throw new SluiceError('InvalidInput', `--label ${JSON.stringify(pair)} must be <key>=<value>`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}

/** Type and content of the secret; undefined if no credentials are given. */
async function secretData(
  options: RegOptions,
): Promise<{ readonly type: string; readonly stringData: Record<string, string> } | undefined> {
  const { repoBasicUsername, repoBasicPasswordFile, repoSshKeyFile, knownHostsFile, caFile } = options;
  const password = (await fileText('the password', repoBasicPasswordFile)) ?? options.repoBasicPassword;
  if (password === undefined && repoBasicUsername !== undefined)
    throw new SluiceError('InvalidInput', '--repo-basic-username needs a password: give --repo-basic-password-file');
  if ((repoSshKeyFile === undefined) !== (knownHostsFile === undefined))
    throw new SluiceError(
      'InvalidInput',
      '--repo-ssh-key-file and --known-hosts-file go together: print the keys of the host with "ssh-keyscan <host>", and compare their fingerprints with what it publishes',
    );
  const values: Record<string, string | undefined> = {
    ...(password === undefined ? {} : { username: repoBasicUsername ?? 'git', password }),
    identity: await fileText('the key', repoSshKeyFile),
    known_hosts: await fileText('the keys of the host', knownHostsFile),
    'ca.crt': await fileText('the certificates', caFile),
  };
  const stringData: Record<string, string> = {};
  for (const [key, value] of Object.entries(values)) if (value !== undefined) stringData[key] = value;
  if (Object.keys(stringData).length === 0) return undefined;
  return { type: password === undefined ? 'Opaque' : 'kubernetes.io/basic-auth', stringData };
}

async function fileText(what: string, file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : readSecretFile(what, file);
}
