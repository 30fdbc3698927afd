import type { KrmFunction, ResourceList } from '../model/function.ts';
import type { Resource } from '../resource/resource.ts';
import { type FieldSpec, fieldSpecsAt, placesOf, selects } from './support/fields/field-spec.ts';
import {
  CONFIG_MAP,
  configOf,
  invalidConfig,
  isOfKind,
  KPT_FUNCTIONS,
  textAt,
  textsAt,
} from './support/fields/function-config.ts';
import { podSpecOf } from './support/fields/pod-specs.ts';

const SET_IMAGE = { apiVersion: KPT_FUNCTIONS, kind: 'SetImage' };

const CONTAINERS = ['initContainers', 'containers', 'ephemeralContainers'];

/** Paths of containers in custom resources that follow the structure of Kubernetes' own kinds. */
const USUAL_POD_SPECS: readonly (readonly string[])[] = [['spec'], ['spec', 'template', 'spec']];

interface Settings {
  readonly name: string;
  readonly newName: string;
  readonly newTag: string;
  readonly digest: string;
}

export const setImage: KrmFunction = {
  name: 'set-image',
  doc: {
    summary: 'Changes the name, tag or digest of a container image wherever it is used.',
    description: [
      'Changes `image` of all containers (also init and ephemeral ones) of pods and of kinds with a pod template, such as Deployment and CronJob; and of custom resources that have containers below `spec` or `spec.template.spec`. Images named `name`, with any tag and digest, become `newName` with `newTag` or `digest`; what is not set stays.',
      'It is configured by a ConfigMap with these fields, or by a SetImage that has them in `image`, and may name more fields with images by `additionalImageFields`: `path` (`spec/manifest/images[]/image`), and `group`, `version`, `kind` of the resources, and `create` for a field that may be missing.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: set-image:v0.1.1\n      configMap:\n        name: nginx\n        newName: registry.example.org/nginx\n        newTag: 1.27.0\n',
      'apiVersion: fn.kpt.dev/v1alpha1\nkind: SetImage\nmetadata:\n  name: image\nimage:\n  name: nginx\n  digest: sha256:3cbbd11b65aab276c8578c039d0c21d0ffb7a496e09c0f632bac1a1b2c115256\nadditionalImageFields:\n  - kind: MyKind\n    group: example.org\n    path: spec/manifest/images[]/image\n',
    ],
    differences: [
      'Jobs, CronJobs, ReplicationControllers, containers for debugging and custom resources with containers are changed too.',
      'With both `newTag` and `digest`, the digest counts, as in the images v0.1; the documentation calls it an error.',
      'Only images that change are counted.',
    ],
  },
  run(list) {
    const { settings, more } = settingsOf(list);
    let count = 0;
    for (const item of list.items) {
      for (const path of imagePathsOf(item))
        for (const place of placesOf(item, path)) count += setAt(item, place, settings);
      for (const spec of more) {
        if (!selects(spec, item)) continue;
        for (const place of placesOf(item, spec.path, spec.create)) count += setAt(item, place, settings, spec.create);
      }
    }
    list.results.push({ message: `summary: updated a total of ${count} image(s)`, severity: 'info' });
  },
};

function settingsOf(list: ResourceList): { settings: Settings; more: readonly FieldSpec[] } {
  const config = configOf(list, 'set-image', [CONFIG_MAP, SET_IMAGE]);
  const isMap = isOfKind(config, CONFIG_MAP);
  const texts = textsAt(config, [isMap ? 'data' : 'image']);
  for (const key of texts.keys())
    if (!['name', 'newName', 'newTag', 'digest'].includes(key))
      throw invalidConfig(config, `unknown field ${JSON.stringify(key)}: use name, newName, newTag, digest`);
  const [name = '', newName = '', newTag = '', digest = ''] = ['name', 'newName', 'newTag', 'digest'].map((key) =>
    texts.get(key),
  );
  if (name === '') throw invalidConfig(config, 'must specify `name`');
  if (newName === '' && newTag === '' && digest === '')
    throw invalidConfig(config, 'must specify one of `newName`, `newTag`, or `digest`');
  const more = isMap ? [] : fieldSpecsAt(config, 'additionalImageFields');
  return { settings: { name, newName, newTag, digest }, more };
}

function imagePathsOf(item: Resource): (readonly string[])[] {
  const podSpec = podSpecOf(item);
  const bases = podSpec === undefined ? USUAL_POD_SPECS : [podSpec];
  return bases.flatMap((base) => CONTAINERS.map((list) => [...base, list, 'image']));
}

/** 1 if the image there changed. */
function setAt(item: Resource, place: readonly (string | number)[], settings: Settings, create = false): 0 | 1 {
  const old = textAt(item, place) ?? (create ? settings.name : undefined);
  const changed = old === undefined ? undefined : changedImage(old, settings);
  if (changed === undefined || (changed === old && item.node(place) !== undefined)) return 0;
  item.set(place, changed);
  return 1;
}

/** The new image; undefined if another image is named. */
function changedImage(image: string, { name, newName, newTag, digest }: Settings): string | undefined {
  if (!image.startsWith(name) || !/^(?::[\w.{}-]*)?(?:@sha256:[\w.{}-]*)?$/.test(image.slice(name.length)))
    return undefined;
  const [named = '', ...digests] = image.split('@');
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const base = newName !== '' ? newName : hasTag ? named.slice(0, colon) : named;
  if (digest !== '') return `${base}@${digest}`;
  if (newTag !== '') return `${base}:${newTag}`;
  return base + (hasTag ? named.slice(colon) : '') + digests.map((part) => `@${part}`).join('');
}
