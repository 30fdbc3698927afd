import { Command } from 'commander';

/** A command whose usage errors name everything that is missing, so that one more attempt is enough. */
export class SluiceCommand extends Command {
  override createCommand(name?: string): SluiceCommand {
    return new SluiceCommand(name);
  }

  /** Called by commander for the first required option that is missing. */
  missingMandatoryOptionValue(): void {
    const missing = this.options.filter(
      (option) => option.mandatory && this.getOptionValue(option.attributeName()) === undefined,
    );
    const named = missing.map(({ flags }) => `'${flags}'`).join(', ');
    const what = missing.length === 1 ? 'required option' : 'required options';
    this.error(`error: ${what} ${named} not specified`, { code: 'commander.missingMandatoryOptionValue' });
  }
}
