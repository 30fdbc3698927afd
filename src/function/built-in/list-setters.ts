// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { isScalar, isSeq, type Node } from 'yaml';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import type { Resource } from '../resource/resource.ts';
import { plainValue } from '../yaml/node-value.ts';
import { textAt, textsAt } from './support/fields/function-config.ts';
import { walkFields } from './support/fields/walk-fields.ts';
import { yamlList } from './support/fields/yaml-list.ts';
import { scalarText } from './support/text/scalar-text.ts';
import { deriveSetters, isListField, setterPatternOf, soleSetter } from './support/text/setter-pattern.ts';
import { isSecret } from './support/text/shown-value.ts';

interface FoundSetter {
  readonly value: string;
  readonly type: 'string' | 'list';
  /** Fields that use it. */
  count: number;
}

/** Characters of a value that its result shows. */
const MAX_SHOWN_CHARACTERS = 200;

export const listSetters: KrmFunction = {
  name: 'list-setters',
  doc: {
    summary: 'Lists the setters of a package, with their values and the number of their fields.',
    description: [
      'Every setter becomes a result. Setters are those that apply-setters has values for in the pipeline of the Kptfile of the package, and those of comments `# kpt-set: ${name}`; the values of the latter are read from the fields.',
      'It changes nothing and needs no configuration.',
    ].join('\n\n'),
    examples: ['sluice fn eval --image list-setters:v0.1 --include-meta-resources\n'],
    differences: [
      'A list with a comment that names more than one setter is skipped.',
      'Values that are in a Secret or look like one are not shown, and long ones are cut.',
    ],
  },
  run(list) {
    const setters = new Map<string, FoundSetter>();
    addConfigured(list, setters);
    for (const resource of list.items) addFields(resource, setters);
    for (const name of [...setters.keys()].sort()) {
      const { value, type, count } = setters.get(name) as FoundSetter;
      const shown = isSecret(value, [name]) ? '(hidden)' : value.slice(0, MAX_SHOWN_CHARACTERS);
      const message = `Name: ${name}, Value: ${shown}, Type: ${type}, Count: ${count}`;
      list.results.push({ severity: 'info', message });
    }
    if (setters.size === 0) list.results.push({ severity: 'warning', message: 'no setters found' });
  },
};

/** The values for apply-setters in the Kptfile of the package; of two values for a setter the last one. */
function addConfigured({ items, results }: ResourceList, setters: Map<string, FoundSetter>): void {
  const kptfile = items.find(({ file, kind }) => file === 'Kptfile' && kind === 'Kptfile');
  const mutators = kptfile?.node(['pipeline', 'mutators']);
  if (kptfile === undefined || !isSeq(mutators)) return;
  for (const at of mutators.items.keys()) {
    const place = ['pipeline', 'mutators', at];
    if (textAt(kptfile, [...place, 'image'])?.includes('apply-setters') !== true) continue;
    const path = textAt(kptfile, [...place, 'configPath'])?.replace(/^\.\//, '');
    const config = path === undefined ? undefined : items.find(({ file }) => file === path);
    if (path !== undefined && config === undefined)
      results.push(
        resultFor('error', `the file ${path} is not in the package`, kptfile, `pipeline.mutators[${at}].configPath`),
      );
    const data = config === undefined ? textsAt(kptfile, [...place, 'configMap']) : textsAt(config, ['data']);
    for (const [name, value] of data) {
      const items = yamlList(value)?.items;
      if (items === undefined) setters.set(name, { value, type: 'string', count: 0 });
      else setters.set(name, { value: listText(items), type: 'list', count: 0 });
    }
  }
}

function addFields(resource: Resource, setters: Map<string, FoundSetter>): void {
  walkFields(resource.root, (node, trail) => {
    if (!isScalar(node) && !isListField(node, trail)) return;
    const pattern = setterPatternOf(node);
    if (pattern === undefined) return;
    if (isScalar(node)) {
      for (const [name, value] of deriveSetters(pattern, scalarText(node)) ?? []) count(name, value, 'string');
    } else if (isSeq(node)) {
      const name = soleSetter(pattern);
      if (name !== undefined) count(name, listText(node.items as Node[]), 'list');
    }
  });

  function count(name: string, text: string, type: FoundSetter['type']): void {
    const found = setters.get(name);
    const value = resource.kind === 'Secret' ? '(hidden)' : text;
    if (found === undefined) setters.set(name, { value, type, count: 1 });
    else found.count++;
  }
}

function listText(items: readonly Node[]): string {
  const texts = items.map((item) => (isScalar(item) ? scalarText(item) : JSON.stringify(plainValue(item))));
  return `[${texts.join(', ')}]`;
}
