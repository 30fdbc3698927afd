import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { MergePatch } from '../../resource/patch/merge-patch.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import type { Access } from '../access/access.ts';
import { inAccess } from '../access/in-access.ts';
import { syncRepository } from '../access/repository-status.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { putSecret } from './put-secret.ts';
import { expectRepository } from './repo-get.ts';
import {
  AUTH_SECRET_SUFFIX,
  credentialsGiven,
  gatesAnnotation,
  labelsOf,
  type RepositoryOptions,
} from './repository-options.ts';
import { readWebhookSecret, WEBHOOK_SECRET_SUFFIX, webhookAddressText, writeWebhookSecret } from './webhook-secret.ts';

export interface EditOptions extends RepositoryOptions, PlaceOptions, ActorOptions {}

/** `sluice repo edit`: changes what can be changed of a registered repository, and reads it again. */
export function repoEdit(name: string, options: EditOptions, invocation: Invocation): Promise<CommandResult> {
  const edit = async (access: Access) => {
    const { client, namespace } = access;
    const { terminal } = invocation;
    const webhookSecret = await readWebhookSecret(options.webhookSecretFile);
    const credentials = await credentialsGiven(options);
    const before = await expectRepository(access, name);
    const auth = `${name}${AUTH_SECRET_SUFFIX}`;
    const annotations = {
      ...gatesAnnotation(options.gates),
      ...(webhookSecret === undefined ? {} : { [WEBHOOK_SECRET_ANNOTATION]: `${name}${WEBHOOK_SECRET_SUFFIX}` }),
    };
    const labels = labelsOf(options.label ?? [], true);
    const spec = {
      ...(options.description === undefined ? {} : { description: options.description }),
      ...(options.deployment === undefined ? {} : { deployment: options.deployment }),
      ...(options.syncSchedule === undefined ? {} : { sync: { schedule: options.syncSchedule || null } }),
      ...(credentials === undefined ? {} : { git: { secretRef: { name: auth } } }),
    };
    const metadata = {
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    };
    if (Object.keys(spec).length + Object.keys(metadata).length === 0)
      throw new SluiceError('InvalidInput', 'no change is given;  "sluice repo edit --help" lists what can be');
    if (credentials !== undefined) {
      // Values that are not given stay, such as the authority beside a new password.
      const known = await client.find(secretKind, { namespace, name: auth });
      const isBasic = credentials.type !== 'Opaque' || known?.type === 'kubernetes.io/basic-auth';
      const type = isBasic ? 'kubernetes.io/basic-auth' : 'Opaque';
      await putSecret(
        access,
        { name: auth, ...credentials, type },
        { keep: before.spec.git?.secretRef?.name === auth },
      );
    }
    if (webhookSecret !== undefined) await writeWebhookSecret(access, name, webhookSecret);
    await client.patch(repositoryKind, { namespace, name }, { metadata, spec } as unknown as MergePatch);
    terminal.line(`${name} edited`);
    if (webhookSecret !== undefined) terminal.note(`webhooks go to ${webhookAddressText(access, name)}`);
    try {
      await syncRepository(access, name);
    } catch (error) {
      throw new SluiceError('Unavailable', `${name} is edited, but cannot be used: ${messageOf(error)}`, {
        cause: error,
      });
    }
    return 0;
  };
  return inAccess(options, invocation, edit, true);
}
