import { positional, wantString, wrong } from '../../starlark/library/arguments.ts';
import { moduleOf } from '../../starlark/modules/module.ts';
import { Dict } from '../../starlark/values/hash-table.ts';
import type { Value } from '../../starlark/values/value.ts';

/** The identity of a resource. */
export const KRMFN = moduleOf('krmfn', {
  match_gvk(_machine, args, named) {
    positional('match_gvk', args, named, 3);
    const [resource = null, apiVersion = null, kind = null] = args;
    const wanted = [wantString('match_gvk', apiVersion, 2), wantString('match_gvk', kind, 3)];
    const dict = wantResource('match_gvk', resource);
    return dict.get('apiVersion') === wanted[0] && dict.get('kind') === wanted[1];
  },
  match_name: (_machine, args, named) => {
    positional('match_name', args, named, 2);
    return (
      metadataOf(wantResource('match_name', args[0] ?? null), 'name') === wantString('match_name', args[1] ?? null, 2)
    );
  },
  match_namespace: (_machine, args, named) => {
    positional('match_namespace', args, named, 2);
    const namespace = metadataOf(wantResource('match_namespace', args[0] ?? null), 'namespace');
    return namespace === wantString('match_namespace', args[1] ?? null, 2);
  },
});

function wantResource(name: string, value: Value): Dict {
  return value instanceof Dict ? value : wrong(name, value, 'dict');
}

/** Empty if it is absent. */
function metadataOf(resource: Dict, field: string): Value {
  const metadata = resource.get('metadata');
  return (metadata instanceof Dict ? metadata.get(field) : undefined) ?? '';
}
