import type { z } from 'zod';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Access } from './access.ts';
import { findRevision } from './find-revision.ts';

/**
 * Reads a sub-resource of a package revision, such as its history. NotFound lists similar names; Unsupported means that the server is
 * not Sluice.
 */
export async function readRevision<Schema extends z.ZodType>(
  access: Access,
  name: string,
  subResource: string,
  schema: Schema,
  parameters: Readonly<Record<string, string>> = {},
): Promise<z.output<Schema>> {
  const { client, namespace, where } = access;
  if (!access.isSluice) {
    throw new SluiceError(
      'Unsupported',
      `${where} serves no "${subResource}" of package revisions, which only Sluice does; in a cluster with Sluice "kubectl get apiservice v1alpha1.porch.kpt.dev" has to name its Service, else apply its manifests again; without one use the kubeconfig of "sluice up", or a data folder`,
    );
  }
  const shown = await client
    .subResource(subResource)
    .get(packageRevisionKind, { namespace, name }, parameters)
    .catch(async (error: unknown) => {
      // Details of a deleted revision follow a colon; for other names, similar ones may help.
      if (isSluiceError(error, 'NotFound') && !error.message.includes(' not found: ')) await findRevision(access, name);
      throw error;
    });
  const parsed = schema.safeParse(shown);
  if (parsed.success) return parsed.data;
  throw new SluiceError(
    'Unavailable',
    `${where} answered with a "${subResource}" of ${name} that cannot be read: is it of another version of Sluice? (${parsed.error.issues[0]?.message})`,
    { cause: parsed.error },
  );
}
