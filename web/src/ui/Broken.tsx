import { Component, type ReactNode } from "react";
import { ProblemView } from "./ProblemView";

interface BrokenProps {
  /** When this changes, what broke is tried again: the address, for a page. */
  readonly at: string;
  readonly children: ReactNode;
}

interface BrokenState {
  readonly error: unknown;
  readonly at: string;
}

/** The one class of the console: React has no other way to catch what a page throws while it is drawn. */
export class Broken extends Component<BrokenProps, BrokenState> {
  override state: BrokenState = { error: undefined, at: this.props.at };

  static getDerivedStateFromError(error: unknown): Partial<BrokenState> {
    return { error };
  }

  static getDerivedStateFromProps(props: BrokenProps, state: BrokenState): Partial<BrokenState> | null {
    return props.at === state.at ? null : { at: props.at, error: undefined };
  }

  override render(): ReactNode {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="mx-auto max-w-xl p-4">
        <ProblemView problem={this.state.error} onRetry={() => this.again()} />
      </div>
    );
  }

  private again(): void {
    // After an update of the server the page's old files are gone: only loading it anew helps.
    if (isStale(this.state.error)) location.reload();
    else this.setState({ error: undefined });
  }
}

function isStale(error: unknown): boolean {
  return error instanceof Error && /import|module script|preload/i.test(error.message);
}
