import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { openAccess } from '../access/open-access.ts';
import type { PlaceOptions } from '../program/invocation.ts';

const MAX_NAMES = 1000;

/** Names that a server has. */
export async function serverNames(
  kind: string,
  current: string,
  options: PlaceOptions,
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  const silent = () => undefined;
  const access = await openAccess({
    options,
    environment,
    write: false,
    onNote: silent,
    onWarning: silent,
    onOpenFailure: silent,
  });
  try {
    const { client, namespace } = access;
    const [repository = '', ...more] = current.split('.');
    const filter = { namespace, limit: MAX_NAMES };
    const { items } =
      kind === 'repositories'
        ? await client.list(repositoryKind, filter)
        : await client.list(packageRevisionKind, {
            ...filter,
            ...(more.length === 0 ? {} : { fieldSelector: `spec.repository=${repository}` }),
          });
    return items.map(({ metadata }) => metadata.name);
  } finally {
    await access.close();
  }
}
