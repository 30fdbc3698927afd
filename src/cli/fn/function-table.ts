import type { KrmFunction } from '../../function/model/function.ts';

const BEGIN = '<!-- built-in functions: written by `npm run functions` -->';
const END = '<!-- end of built-in functions -->';

/** Prints the table of built-in functions in Markdown: the effect of each, and the differences from the published one. */
function functionTable(functions: readonly KrmFunction[]): string {
  const rows = [...functions]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, doc }) => {
      const differences = doc.differences.length === 0 ? 'none known' : doc.differences.map(cell).join('<br>');
      return `| \`${name}\` | ${cell(doc.summary)} | ${cell(doc.compared ?? 'none: by its documentation')} | ${differences} |`;
    });
  return ['| built-in | behaviour | versions compared | differences |', '|---|---|---|---|', ...rows].join('\n');
}

/** Returns the page with the table between its marks regenerated. */
export function withFunctionTable(page: string, functions: readonly KrmFunction[]): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`the page has no lines ${BEGIN} and ${END}`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${functionTable(functions)}\n\n${page.slice(end)}`;
}

function cell(text: string): string {
  return text.trim().replace(/\s+/g, ' ').replaceAll('|', '\\|');
}
