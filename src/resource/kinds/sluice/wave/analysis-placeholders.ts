/** `{{args.name}}` or `{{targets}}`, as in Argo Rollouts; what is between other braces belongs to the query. */
const PLACEHOLDER = /\{\{\s*(args\.([A-Za-z0-9_-]{1,63})|targets)\s*\}\}/g;
const ANY_BRACES = /\{\{[^{}]*\}\}/g;

/** What a text of a metric refers to. */
export interface UsedPlaceholders {
  readonly args: ReadonlySet<string>;
  readonly usesTargets: boolean;
  /** Double braces that are no placeholder. */
  readonly unknown: readonly string[];
}

export function placeholdersIn(texts: readonly string[]): UsedPlaceholders {
  const args = new Set<string>();
  const unknown: string[] = [];
  let usesTargets = false;
  for (const text of texts) {
    for (const [, what, name] of text.matchAll(PLACEHOLDER)) {
      if (what === 'targets') usesTargets = true;
      else if (name !== undefined) args.add(name);
    }
    unknown.push(...[...text.replaceAll(PLACEHOLDER, '').matchAll(ANY_BRACES)].map(([braces]) => braces));
  }
  return { args, usesTargets, unknown };
}

/** Replaces each placeholder. Values of arguments and names of targets have no characters that end a string of a query. */
export function fillPlaceholders(text: string, args: ReadonlyMap<string, string>, targets: string): string {
  return text.replaceAll(PLACEHOLDER, (whole: string, what: string, name: string | undefined) => {
    if (what === 'targets') return targets;
    return (name === undefined ? undefined : args.get(name)) ?? whole;
  });
}
