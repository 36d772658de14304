import { Rocket, SearchX } from "lucide-react";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { TermChips } from "./Chips";
import { type Filter, isNone, NONE } from "./filter";

interface EmptiesProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
  /** There may be such jobs further back than was looked. */
  readonly hasMore: boolean;
  readonly isReading: boolean;
  readonly onMore: () => void;
  readonly onSubmit: () => void;
}

/** Nothing to show: because there is nothing yet, or because the filter finds nothing. */
export function Empties({ filter, onChange, hasMore, isReading, onMore, onSubmit }: EmptiesProps) {
  if (isNone(filter)) {
    return (
      <Empty
        icon={Rocket}
        title="No jobs yet"
        line="A job executes a recipe. Submit one here or from a terminal; it appears as soon as it is stored."
        command="windlass submit hello --input name=Ada"
        action={
          <Button variant="primary" onClick={onSubmit}>
            Choose a recipe
          </Button>
        }
      />
    );
  }
  return (
    <Empty
      icon={SearchX}
      title={hasMore ? "No job found so far" : "No job matches"}
      line={
        hasMore
          ? "Only the newest jobs were searched. There are older ones."
          : "Remove a part of the filter, or clear it. New matching jobs appear here by themselves."
      }
      action={
        <div className="flex flex-col items-center gap-4">
          <TermChips filter={filter} onChange={onChange} />
          <div className="flex gap-2">
            {hasMore && (
              <Button variant="primary" busy={isReading} onClick={onMore}>
                Look further back
              </Button>
            )}
            <Button onClick={() => onChange(NONE)}>Clear the filter</Button>
          </div>
        </div>
      }
    />
  );
}
