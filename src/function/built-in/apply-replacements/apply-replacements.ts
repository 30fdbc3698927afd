import type { Node } from 'yaml';
import type { KrmFunction, ResourceList } from '../../model/function.ts';
import { resultFor } from '../../model/function-result.ts';
import { type FunctionVersion, isBefore } from '../../model/function-version.ts';
import type { Resource } from '../../resource/resource.ts';
import { configOf, KPT_FUNCTIONS } from '../support/fields/function-config.ts';
import { parseFieldPath } from './field-path.ts';
import { findSource, findTargets } from './find-fields.ts';
import { type CopiedValue, copiedValue, isEmpty, writeValue } from './replace-value.ts';
import {
  type Replacement,
  type ReplacementSource,
  type ReplacementTarget,
  replacementsOf,
} from './replacement-config.ts';
import { describeSelector, sourcesIn, targetsIn } from './resource-selector.ts';

/** The differences between the published versions of apply-replacements, which come from their versions of kustomize. */
interface ReplacementRules {
  /** A target field that does not exist is skipped without a message; else it is an error. */
  readonly skipsMissing: boolean;
  /** `[name=web]` in a target is the first item with exactly that text; else all whose text the regular expression is found in. */
  readonly exactItems: boolean;
  /** A scalar that is copied over another one keeps its own type; else it takes the type of what it replaces. */
  readonly keepsSourceType: boolean;
  /** The fields of a `select` are exact texts; else regular expressions for the whole text. */
  readonly literalSelects: boolean;
}

const DEFAULT_FIELD_PATH = 'metadata.name';
const MAX_NAMED_RESOURCES = 5;

export const applyReplacements: KrmFunction = {
  name: 'apply-replacements',
  readsStatus: true,
  doc: {
    summary: 'Copies fields of one resource into fields of others.',
    description: [
      'The configuration is an ApplyReplacements with a list `replacements`, which are done one after the other, as kustomize does them. Each copies the field `fieldPath` of its `source`, or the value `sourceValue`, into the fields `fieldPaths` of all resources that one of its `targets` selects with `select` and does not reject with `reject`. Without a path it is `metadata.name`.',
      'A source is one resource: `group`, `version`, `kind`, `name` and `namespace` are compared as they are, and no namespace is the namespace `default`. Those of a target may be regular expressions (RE2) for the whole text (exact texts up to v0.1.2); `labelSelector` and `annotationSelector` select by labels and annotations. What kustomize notes as earlier names of a resource counts as well.',
      'A path has dots between its keys. A dot in a key is written `\\.`, or the key is in brackets: `metadata.annotations.[example.org/owner]`. A number is a place in a list, `[name=web]` selects the items of a list with that field, and in targets `*` for all of them. In targets the text behind `=` is a regular expression that is searched anywhere in the field, so `[name=web]` also finds `web-admin`; write `[name=^web$]` for that one only. Up to v0.1.1 it is an exact text, and the first such item counts.',
      'With `options.delimiter` a text is split, and only the part at `options.index` (from 0) is read or written; an index below 0 writes before the first part, one beyond the end behind the last. `options.create` makes fields and list items that are missing in a target, an item behind the last one at most.',
      'A value takes the type of the field that it replaces: over a number the text "3" becomes a number, over a text the number 3 becomes a text. Up to v0.1.1 it keeps its own type. Mappings and lists are copied whole.',
      'It is an error if a source selects none or several resources, if its field is missing or empty, or if a target that is selected does not have the field and `options.create` is not set; up to v0.1.1 such a target is skipped without a message. A target that selects nothing has no effect.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: ghcr.io/kptdev/krm-functions-catalog/apply-replacements:v0.1\n      configPath: update-host.yaml\n',
      `apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: update-host
  annotations:
    config.kubernetes.io/local-config: "true"
replacements:
  - source:
      kind: ConfigMap
      name: kptfile.kpt.dev
      fieldPath: data.name
    targets:
      - select:
          kind: Ingress
        fieldPaths:
          - spec.rules.0.host
        options:
          delimiter: .
          index: 0
      - select:
          kind: Deployment
          name: web
        fieldPaths:
          - spec.template.spec.containers.[name=web].env.[name=HOST].value
`,
    ],
    differences: [
      'All errors are reported, not only the first one, each with the resource and the field.',
      'Unknown fields in the configuration are an error.',
      'A resource is rejected if it meets all of a `reject`; the published function also rejects it if only the labels match.',
      'A mapping or list that is copied over a text replaces it; the published function makes the text empty.',
      'Comments and quotes of the target stay as they are.',
      '`options.encoding` has no effect, as in the published function, but causes a warning.',
    ],
    compared: 'v0.1.1, and the filters of kustomize that v0.1.2 and v0.1.5 call, by `npm run test:go`',
  },
  run(list, { version }) {
    const config = configOf(list, 'apply-replacements', [{ apiVersion: KPT_FUNCTIONS, kind: 'ApplyReplacements' }]);
    for (const [at, replacement] of replacementsOf(config).entries())
      new ReplacementRun(list, config, { index: at, rules: rulesOf(version) }).run(replacement);
  },
};

/** One replacement of the configuration. */
class ReplacementRun {
  readonly #list: ResourceList;
  readonly #config: Resource;
  readonly #where: string;
  readonly #index: number;
  readonly #rules: ReplacementRules;

  constructor(list: ResourceList, config: Resource, { index, rules }: { index: number; rules: ReplacementRules }) {
    this.#list = list;
    this.#config = config;
    this.#index = index;
    this.#rules = rules;
    this.#where = `replacements[${index}]`;
  }

  run({ source, targets }: Replacement): void {
    const value = source === undefined ? this.#givenValue() : this.#sourceValue(source);
    if (value === undefined) return;
    for (const [at, target] of targets.entries()) this.#apply(value, target, `${this.#where}.targets[${at}]`);
  }

  #givenValue(): CopiedValue | undefined {
    const value = copiedValue(this.#config.node(['replacements', this.#index, 'sourceValue']) as Node);
    return typeof value === 'string' ? undefined : value;
  }

  #sourceValue(source: ReplacementSource): CopiedValue | undefined {
    const where = `${this.#where}.source`;
    this.#checkEncoding(source.options?.encoding, where);
    const found = sourcesIn(this.#list.items, source);
    const [resource] = found;
    if (resource === undefined) {
      this.#fail(`no resource in the package is ${describeSelector(source)}`, this.#config, where);
      return undefined;
    }
    if (found.length > 1) {
      const names = found.slice(0, MAX_NAMED_RESOURCES).map((item) => item.describe());
      if (found.length > MAX_NAMED_RESOURCES) names.push('…');
      this.#fail(
        `${found.length} resources are ${describeSelector(source)}: ${names.join(', ')}; select one`,
        this.#config,
        where,
      );
      return undefined;
    }
    const path = source.fieldPath || DEFAULT_FIELD_PATH;
    const node = findSource(resource, parseFieldPath(path));
    if (node === undefined || isEmpty(node)) {
      this.#fail(
        `the field is missing or empty, but ${this.#where} of ${this.#config.describe()} copies it`,
        resource,
        path,
      );
      return undefined;
    }
    const value = copiedValue(node, source.options);
    if (typeof value !== 'string') return value;
    this.#fail(`${value}, of ${where} in ${this.#config.describe()}`, resource, path);
    return undefined;
  }

  #apply(value: CopiedValue, target: ReplacementTarget, where: string): void {
    const { options, fieldPaths = [] } = target;
    this.#checkEncoding(options?.encoding, where);
    const paths = fieldPaths.length === 0 ? [DEFAULT_FIELD_PATH] : fieldPaths;
    const steps = paths.map(parseFieldPath);
    const selecting = { where: `${this.#config.describe()}: ${where}`, literal: this.#rules.literalSelects };
    for (const resource of targetsIn(this.#list.items, target, selecting)) {
      for (const [at, path] of paths.entries()) {
        const create = options?.create === true;
        const { slots, why } = findTargets(resource, steps[at] ?? [], { create, exactItems: this.#rules.exactItems });
        if (slots.length === 0 && !(this.#rules.skipsMissing && !create)) {
          const verb = create ? 'find or create' : 'find';
          const reason = why === undefined ? '' : `: ${why}`;
          this.#fail(
            `unable to ${verb} the field that ${where} of ${this.#config.describe()} replaces${reason}`,
            resource,
            path,
          );
        }
        for (const slot of slots) {
          const { keepsSourceType } = this.#rules;
          const problem = writeValue(slot, value, { ...options, keepsSourceType });
          if (problem !== undefined)
            this.#fail(`${problem}, of ${where} in ${this.#config.describe()}`, resource, path);
        }
      }
    }
  }

  #checkEncoding(encoding: string | undefined, where: string): void {
    if (encoding !== undefined && encoding !== '')
      this.#list.results.push(
        resultFor('warning', 'encoding has no effect', this.#config, `${where}.options.encoding`),
      );
  }

  #fail(message: string, resource: Resource, path: string): void {
    this.#list.results.push(resultFor('error', message, resource, path));
  }
}

function rulesOf(version: FunctionVersion | undefined): ReplacementRules {
  const isFirst = isBefore(version, '0.1.2');
  return {
    skipsMissing: isFirst,
    exactItems: isFirst,
    keepsSourceType: isFirst,
    literalSelects: isBefore(version, '0.1.3'),
  };
}
