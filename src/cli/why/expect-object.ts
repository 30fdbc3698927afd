import { SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import type { KubernetesObject, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { Access } from '../access/access.ts';

/** An object by name; NotFound with what may have been meant, or what there is. */
export async function expectObject<T extends KubernetesObject>(
  { client, namespace }: Access,
  kind: Kind<T>,
  name: string,
): Promise<Stored<T>> {
  const found = await client.find(kind, { namespace, name });
  if (found !== undefined) return found;
  const names = (await client.list(kind, { namespace })).items.map(({ metadata }) => metadata.name);
  const why = (one: string) => `"sluice why ${kind.kind.toLowerCase()}/${one}"`;
  const near = nearMisses(name, names);
  const hint =
    near.length > 0
      ? `did you mean ${near.map(why).join(' or ')}?`
      : `there ${names.length === 0 ? 'is none' : `are ${names.length}, such as ${names.slice(0, 3).join(', ')}`}`;
  throw new SluiceError('NotFound', `there is no ${kind.kind} "${name}" in namespace ${namespace}; ${hint}`);
}
