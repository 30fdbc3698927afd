import { SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';

/** An object by name; NotFound with what may have been meant, or what there is. */
export async function expectObject<T extends KubernetesObject>(
  access: Access,
  kind: Kind<T>,
  name: string,
): Promise<Stored<T>> {
  const { client, namespace } = access;
  const found = await client.find(kind, { namespace, name });
  if (found !== undefined) return found;
  const names = (await client.list(kind, { namespace })).items.map(({ metadata }) => metadata.name);
  throw missingObject(access, kind, name, names, []);
}

/** NotFound with what may have been meant, or what there is; `problems` are reasons why there may be more. */
export function missingObject(
  { namespace }: Pick<Access, 'namespace'>,
  kind: Pick<Kind<KubernetesObject>, 'kind'>,
  name: string,
  names: readonly string[],
  problems: readonly string[],
): SluiceError {
  const why = (one: string) => `"sluice why ${kind.kind.toLowerCase()}/${one}"`;
  const near = nearMisses(name, names);
  const hint =
    near.length > 0
      ? `did you mean ${near.map(why).join(' or ')}?`
      : `there ${names.length === 0 ? 'is none' : `are ${names.length}, such as ${names.slice(0, 3).join(', ')}`}`;
  const causes = problems.map((problem) => `; ${problem}`).join('');
  return new SluiceError('NotFound', `there is no ${kind.kind} "${name}" in namespace ${namespace}; ${hint}${causes}`);
}
