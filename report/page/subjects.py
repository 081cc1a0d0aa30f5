"""What a page is about (until the Analysis says it)."""

from report.analysis import Analysis


def subject(analysis: Analysis) -> str:
    if not analysis.own:
        return "nothing"
    if not analysis.groups:
        return "failed"
    if analysis.costs and analysis.costs.answer and analysis.costs.pair and analysis.expectations:
        return "costs"
    own = [cell for cell in analysis.measured_here if cell.session == analysis.lead] or analysis.measured_here
    if sum(cell.verdict == "unproven" for cell in own) * 2 > len(own):
        return "first-look"
    if any(judged.compared for judged in analysis.verdicts) and analysis.evidence.purchase is None:
        return "verdicts"
    from report.comparisons.standings import standings

    found = standings(analysis.own_cells, analysis.cells)
    if found and len(found.rows) >= 5:
        return "class"
    if analysis.expectations and analysis.expectations[0].units is not None:
        return "pair"
    return "self"
