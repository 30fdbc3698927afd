import type { KptFunction, Selector } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { SingleFunction } from '../../../function/model/pipeline.ts';
import { Resource } from '../../../function/resource/resource.ts';
import { printable } from '../../output/printable.ts';
import { readConfigFile } from '../files/read-config-file.ts';

/** Options of the function to run. */
export interface FunctionOptions {
  readonly image?: string;
  readonly exec?: string;
  readonly tag?: string;
  readonly fnConfig?: string;
  readonly type: 'mutator' | 'validator';
  readonly matchApiVersion?: string;
  readonly matchKind?: string;
  readonly matchName?: string;
  readonly matchNamespace?: string;
  readonly matchAnnotations?: readonly string[];
  readonly matchLabels?: readonly string[];
  readonly excludeApiVersion?: string;
  readonly excludeKind?: string;
  readonly excludeName?: string;
  readonly excludeNamespace?: string;
  readonly excludeAnnotations?: readonly string[];
  readonly excludeLabels?: readonly string[];
}

/** The function of a command line; `settings` are its words after `--`. Throws InvalidInput for words that do not go together. */
export async function evaluatedFunction(
  settings: readonly string[],
  options: FunctionOptions,
): Promise<SingleFunction> {
  const { image, exec, tag, fnConfig, type } = options;
  if ((image === undefined) === (exec === undefined))
    throw new SluiceError('InvalidInput', 'name one function: --image set-namespace, or --exec ./program');
  if (fnConfig !== undefined && settings.length > 0)
    throw new SluiceError(
      'InvalidInput',
      'a configuration comes from --fn-config or from key=value after --, not from both',
    );
  const [first] = settings;
  // As in kpt, a first word without = names another kind than ConfigMap.
  const kind = first !== undefined && !first.includes('=') ? first : undefined;
  const data = mapOf(kind === undefined ? settings : settings.slice(1), 'after --');
  const config =
    fnConfig !== undefined
      ? await readConfigFile(fnConfig)
      : kind === undefined
        ? undefined
        : Resource.from({ apiVersion: 'v1', kind, metadata: { name: 'function-input' }, data });
  const selectors = selectorOf(options, 'match');
  const exclude = selectorOf(options, 'exclude');
  const named: KptFunction = {
    ...(image === undefined ? {} : { image }),
    ...(exec === undefined ? {} : { exec }),
    ...(tag === undefined || image === undefined ? {} : { tag }),
    ...(config === undefined && settings.length > 0 ? { configMap: data } : {}),
    ...(selectors === undefined ? {} : { selectors: [selectors] }),
    ...(exclude === undefined ? {} : { exclude: [exclude] }),
  };
  const list = type === 'validator' ? 'validators' : 'mutators';
  return { list, function: named, ...(config === undefined ? {} : { config: config.toText() }) };
}

function selectorOf(options: FunctionOptions, word: 'match' | 'exclude'): Selector | undefined {
  const [apiVersion, kind, name, namespace] = [
    options[`${word}ApiVersion`],
    options[`${word}Kind`],
    options[`${word}Name`],
    options[`${word}Namespace`],
  ];
  const [annotations, labels] = [options[`${word}Annotations`], options[`${word}Labels`]];
  const selector: Selector = {
    ...(apiVersion === undefined ? {} : { apiVersion }),
    ...(kind === undefined ? {} : { kind }),
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(annotations === undefined ? {} : { annotations: mapOf(annotations, `--${word}-annotations`) }),
    ...(labels === undefined ? {} : { labels: mapOf(labels, `--${word}-labels`) }),
  };
  return Object.keys(selector).length === 0 ? undefined : selector;
}

function mapOf(words: readonly string[], where: string): Record<string, string> {
  const entries = words.map((word): [string, string] => {
    const at = word.indexOf('=');
    if (at < 1)
      throw new SluiceError('InvalidInput', `${where}: ${JSON.stringify(printable(word))} is not written as key=value`);
    return [word.slice(0, at), word.slice(at + 1)];
  });
  const keys = new Set<string>();
  for (const [key] of entries) {
    if (keys.has(key)) throw new SluiceError('InvalidInput', `${where}: ${printable(key)} is given twice`);
    if (key === '__proto__') throw new SluiceError('InvalidInput', `${where}: ${key} cannot be a key`);
    keys.add(key);
  }
  return Object.fromEntries(entries);
}
